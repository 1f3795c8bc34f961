package storetest

import (
	"fmt"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// The rules of tasks, attempts and commands, each with what shows it.

var leaseHistories = []history{
	{"a lease lasts while it is extended, and then another worker gets the task",
		"schedule claim none wait+15 extend=held none wait+15 extend=held none wait+15 extend=held none wait+21 claim extend:old=lost"},
}

var zombieHistories = []history{
	{"what a worker reports after its lease has expired is refused",
		"schedule claim crash claim extend:old=lost done:old=refused retry:old=refused failed:old=refused handback:old=refused dropped:old=refused" +
			" is=running done=accepted done=refused is=absent"},
}

var reportHistories = []history{
	{"an attempt counts if it is retried, but not if it is handed back or dropped",
		"schedule claim retry+10 none wait+11 claim handback claim handback+10 none wait+11 claim failed is=dead none" +
			" requeue=moved claim dropped is=dead requeue claim done is=absent"},
	{"the last failures are kept, with texts of limited length", "schedule " + repeatSteps(store.MaxFailures+3, "claim retry:long")},
}

var handBackHistories = []history{
	{"a task says how often it was handed back, and why the last time, and keeps its failures",
		"schedule claim handback:silent claim handback claim handback claim retry " + repeatSteps(store.MaxFailures+1, "claim handback") + "claim done+0 is=pending"},
}

var repeatingHistories = []history{
	{"a task that repeats goes on after a failed run, and its failed runs share one dead letter",
		"schedule claim done-1 claim " + repeatSteps(store.MaxFailures+2, "failed-1 claim") +
			"requeue@dead=moved is@dead=absent claim@single failed@single is@single=dead purge@single=removed is=running"},
}

// A run is a suspect from its third crash on, or from its last but one, and dead after its last.
var poisonHistories = []history{
	{"one crash", "crashes+1 schedule claim crash none is=dead"},
	{"two crashes", "crashes+2 schedule " + repeatSteps(2, "claim crash") + "none is=dead"},
	{"three crashes", "schedule " + repeatSteps(3, "claim crash") + "none is=dead"},
	{"five crashes", "crashes+5 schedule " + repeatSteps(5, "claim crash") + "none is=dead"},
	{"ten crashes", "crashes+10 schedule " + repeatSteps(10, "claim crash") + "none is=dead"},
}

var suspectHistories = []history{
	{"a suspect stays one until its run ends",
		"schedule claim crash claim crash claim handback claim retry reschedule claim cancel=stopping schedule=following done claim"},
}

var poisonRepeatsHistories = slices.Concat(
	historiesFor("a repeating task does not die of crashes: the next worker decides. A requeued run dies",
		"schedule:%v "+repeatSteps(5, "claim crash")+"claim dropped+1000 is=pending is@dead=dead requeue@dead=moved "+repeatSteps(3, "claim@single crash")+"none is@single=dead",
		"every1", "daily"),
	historiesFor("a record of another version, or one that is too short, does not make a task repeat",
		"schedule:x%v "+repeatSteps(3, "claim crash")+"none is=dead",
		"03020304050607ff", "01020304050607f7", "01080808080808", "01", ""),
)

// The periods of the changed task are the same as before, and another.
var changeHistories = slices.Concat(
	historiesFor("a run that is due stays", "schedule-9:every1 schedule+1000:every%v,b,next,same=replaced is=pending claim done+500 is=pending", 1, 2),
	historiesFor("a run that is being retried stays", "schedule-9:every1 claim retry schedule+1000:every%v,b,next,same=replaced claim done+500", 1, 2),
	historiesFor("a run whose attempt is repeated gets the new content",
		"schedule-9:every1 claim schedule+1000:every%v,b,next,same=following retry schedule+1000:every%v,b,next,same=kept claim done+500", 1, 2),
	historiesFor("a run that is handed back gets the new content",
		"schedule-9:every1 claim schedule+1000:every%v,b,next,same=following handback schedule+1000:every%v,b,next,same=kept claim done+500", 1, 2),
	historiesFor("a run that crashes gets the new content", "schedule-9:every1 claim schedule+1000:every%v,b,next,same=following crash claim done+500", 1, 2),
	historiesFor("a run that dies is followed", "schedule-9:every1 claim schedule+1000:every%v,b,next,same=following failed+900=accepted is@dead=dead is=pending", 1, 2),
	historiesFor("a run that is not due keeps its time if the period does", "schedule+400:every1 schedule+1000:every%v,b,next,same=replaced wait+400", 1, 2),
	[]history{{"Reschedule leaves a run that is due, unless it makes it earlier",
		"schedule-9:every1 reschedule+1000=following is=pending reschedule=moved claim done+0 is=pending"}},
)

var modeHistories = []history{
	{"Keep and a pending task", "schedule+50:any=created schedule+10:any=kept schedule+50:earlier=kept schedule+60:earlier=kept schedule+49:earlier=replaced" +
		" schedule+49:later=kept schedule+40:later=kept schedule+60:later=replaced schedule+10=replaced"},
	{"Keep and what follows a running task", "schedule claim schedule+100:any=kept schedule+150:earlier=following schedule+160:earlier=kept" +
		" schedule+150:later=kept schedule+160:later=following cancel=stopping failed=overtaken is=absent"},
	{"only KeepAny keeps a dead letter", "schedule claim failed schedule:any=kept schedule:earlier=replaced is=pending"},
}

// A task that is scheduled or rescheduled while it runs is pending after the attempt, however
// that ends. A Cancel after that removes the task.
var followingHistories = func() (all []history) {
	for _, end := range []string{"done=overtaken", "done+100=overtaken", "retry+100=overtaken", "failed=overtaken", "dropped=overtaken",
		"failed+100=overtaken", "handback+100=overtaken", "crash"} {
		for _, stopped := range []string{"", "cancel=stopping extend=stopping "} {
			all = append(all, history{end, fmt.Sprintf("schedule claim %[1]sschedule-5:b=following %[2]s claim record=another"+
				" reschedule-5=following %[2]s claim reschedule-5=following cancel=stopping %[2]s none is=absent", stopped, end)})
		}
	}
	return all
}()

// A rescheduled or requeued task gets a new generation, even if it is due at the same time as
// before. Further attempts at a run keep the generation.
var generationHistories = []history{
	{"attempts at one run have one generation", "schedule-5:b claim retry+10 reschedule:g1=moved claim record=another crash claim record=another"},
	{"the run after a running one has a new generation",
		"schedule-5:b claim reschedule-5:g2=following record=another reschedule-5:g3=following done claim record=a333333 handback+1"},
	{"so has a task without attempts, or one that is requeued",
		"schedule-5:b reschedule-5:g4=moved claim record=a444444 failed requeue-5:g5=moved claim record=a555555"},
	{"a task that was scheduled again changes only its generation",
		"schedule-5 claim schedule-5:b=following reschedule-5:g6=following done claim record=a666666"},
	{"a dead letter and its repeating task have separate generations",
		"schedule-5:b claim failed+100 requeue@dead-5:g7=moved claim@single record@single=a777777 record=another done@single"},
	{"a record without room for a generation stays", "schedule:x73686f727479 claim reschedule:g1=following done claim record=shorty failed requeue:g1 claim record=shorty"},
}

var cancelHistories = []history{
	{"a task that is cancelled is gone", "cancel=absent reschedule=absent schedule cancel=removed none is=absent"},
	{"a task with attempts keeps when it was due", "schedule+10 reschedule=moved claim retry+10 reschedule=moved claim"},
	{"only Requeue and Purge change dead letters, and nothing else",
		"schedule claim failed cancel=absent reschedule=absent purge=removed purge=absent schedule purge=absent requeue=absent"},
}

// A requeued run is independent of its repeating task.
var requeueHistories = []history{
	{"a cancelled task leaves the run", "schedule claim failed+100 requeue@dead=moved cancel=removed is=absent claim@single done@single is@single=absent"},
	{"a cancelled run leaves the task", "schedule claim failed+100 requeue@dead cancel@single=removed cancel@single=absent none is=pending"},
	{"both run at the same time", "schedule claim failed+100 requeue@dead+90 reschedule@single=moved claim@single reschedule claim retry@single claim@single" +
		" cancel=stopping extend@single=held extend=stopping reschedule@single=following retry=overtaken failed@single=overtaken is=absent" +
		" claim@single cancel@single=stopping extend@single=stopping retry@single=overtaken none is@single=absent"},
	{"runs that were due at one time have different ids", repeatSteps(3, "schedule-1 claim failed+90 requeue@dead+90=moved cancel")},
}

var pauseHistories = []history{
	{"a paused task waits, with its time and its attempts",
		"pause=absent resume=absent schedule-9 resume=kept claim retry-5 pause=moved pause=kept none resume=moved claim done"},
	{"it runs once if it is rescheduled", "schedule-9 pause none reschedule=once claim pause=kept retry-9 none reschedule+5=once none wait+6 claim handback none" +
		" reschedule=once pause=moved none resume claim done"},
	{"a running task waits after its attempt, however that ends",
		"schedule-9 claim pause=following crash none is=pending resume=moved claim pause=following resume=following pause=following done-9 none resume claim done"},
	{"Schedule does not end a pause, but the end of the task does", "schedule-9 pause schedule-9=replaced none resume claim pause schedule-9=following done none" +
		" cancel=removed schedule-9 claim pause cancel=stopping pause=absent resume=absent schedule-9=following done claim" +
		" pause failed pause=absent requeue=moved claim done"},
	{"a task can be created paused", "schedule-9:paused=created schedule-9:any=kept none resume=moved claim"},
}

// Each command that changes a task gives it a new version. With IfVersion a command changes
// only the version that its client has seen.
var versionHistories = slices.Concat(
	[]history{
		{"commands change the version, attempts do not", "schedule+1000=created schedule+1000:same=kept schedule+1000:any=kept resume=kept schedule+1000=replaced" +
			" pause=moved reschedule+1000=once resume=moved reschedule-10=moved claim retry claim extend handback claim crash claim" +
			" schedule-10:b=following reschedule-10:g1=following pause=following resume=following done claim record=a111111" +
			" cancel=stopping schedule-10=following failed claim failed requeue-10=moved"},
		{"runs and their dead letters have the task's version", "schedule:every1 claim done+0 claim schedule:every1,b=following failed+0 requeue@dead+1000=moved"},
		{"a key without a task has no version", "schedule@none:stale=changed is@none=absent cancel@none:stale=absent"},
	},
	historiesFor("a command for another version changes nothing", "schedule+1000 %v:stale=changed %v:seen,twice",
		"schedule+900", "reschedule+900", "cancel", "pause", "resume"),
	historiesFor("a command for another version leaves a dead letter", "schedule claim failed %v:stale=changed %v:seen,twice", "requeue+900", "purge"),
)

// A follow-up comes once for each end of a run, however often that is reported.
var followUpHistories = slices.Concat(
	[]history{
		{"after a success", "schedule:follows claim done:keep done:keep=refused cancel@next=removed is=absent"},
		{"after a failure, also of a requeued run",
			"schedule:follows claim retry claim failed:keep is=dead cancel@next=removed requeue claim dropped:keep is=dead cancel@next=removed"},
		{"after too many crashes", "schedule:follows " + repeatSteps(3, "claim crash") + "none is=dead cancel@next=removed"},
		{"after each run of a repeating task, also a requeued one", "schedule:follows,every1 claim done+0:keep=accepted cancel@next=removed" +
			" claim failed+1000:keep is@dead=dead cancel@next=removed requeue@dead claim@single done@single:keep"},
		{"a follow-up runs like any task", "schedule:follows claim done:keep claim@next failed@next requeue@next claim@next done@next is@next=absent"},
		{"after a success of a task that was replaced", "schedule:follows claim schedule+1000=following done:keep=overtaken cancel@next=removed cancel=removed"},
		{"but not after a failure of it", "schedule:follows claim schedule+1000=following failed:keep=overtaken is@next=absent cancel=removed"},
	},
	historiesFor("not after a cancelled run", "schedule:follows claim cancel=stopping %v:keep=overtaken is@next=absent", "done", "failed"),
)

var allHistories = slices.Concat(leaseHistories, zombieHistories, reportHistories, handBackHistories, repeatingHistories, poisonHistories, suspectHistories,
	poisonRepeatsHistories, changeHistories, modeHistories, followingHistories, generationHistories, cancelHistories, requeueHistories, pauseHistories,
	versionHistories, followUpHistories)

// A command or a round that is sent again gets its first answer, and has no further effect.
// It is refused after a later one of its sender, or if its first copy came too late.
func testSentAgain(b *storeTest) {
	if b.Advance == nil {
		b.Skip("the model needs a clock that it can move")
	}
	b.play(allHistories, true)
}
