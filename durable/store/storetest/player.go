package storetest

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// A history is a rule, and what clients and workers do to show it. Each word is a step:
//
//	VERB[@ID][TIME][:OPTION,...][=RESULT]
//
// ID is a key, k if it is missing. It is dead for the dead letter of k, single for a requeued
// run of k, and next for the follow-up of the latest attempt at k. TIME is when something is
// due: +10 in ten units, -10 ten microseconds ago. The step fails without its RESULT. The verbs
// are
//
//	schedule, reschedule, cancel, pause, resume, requeue, purge
//	         send a command. RESULT is its outcome.
//	claim    claims all due tasks, which must be this one
//	none     claims, and gets no task
//	extend   extends the latest lease
//	done, retry, failed, handback, dropped
//	         report the end of the latest attempt. RESULT is the receipt.
//	crash    passes the time of a lease
//	wait     passes TIME
//	is       RESULT is the task's state
//	record   RESULT is the task's record
//	crashes  sets how many crashes kill a task, three otherwise, to TIME
//
// The model judges every answer, and after each step all stored data.
type history struct{ rule, steps string }

var stepPattern = regexp.MustCompile(`^([a-z]+)(?:@(\w+))?([+-]\d+)?(?::([\w,]+))?(?:=(\w+))?$`)

// A step is a word of a history.
type step struct {
	verb, name, id string
	n              int // TIME
	timed          bool
	options        []string
	want           string
}

func (s *step) has(option string) bool { return slices.Contains(s.options, option) }

// play returns a test that plays histories, one after the other.
func play(histories []history) func(b *storeTest) {
	return func(b *storeTest) { b.play(histories, false) }
}

// play plays histories. If again is true, each command and round is also sent again, at once
// and a step later, and some after their deadlines, and in between the store is opened again.
func (b *storeTest) play(histories []history, again bool) {
	b.startJudge()
	b.lastNumber = 1 // so that each stamp has one before it
	each := 1
	if b.isBrief() && b.Steps > 0 {
		each = 4 // slow stores; with the race detector all took ten minutes
	}
	if again && (b.isBrief() || b.Steps > 0) {
		each *= 3
	}
	for i, h := range histories {
		if i%each != 0 {
			continue
		}
		b.Log("rule: " + h.rule)
		p := &player{storeTest: b, maxCrashes: 3, leases: make(map[string][]store.Claimed)}
		for step, word := range strings.Fields(h.steps) {
			b.Log(word)
			p.play(word)
			if again && b.judge != nil {
				p.sendAgain()
				if b.Reopen != nil && step == 4 {
					b.Store = b.Reopen(b.T)
				}
			}
		}
		b.compare()
		b.removeAll()
	}
}

// A player plays a history.
type player struct {
	*storeTest
	maxCrashes int
	leases     map[string][]store.Claimed // the attempts at each task, by its name in the steps
	single     string                     // the id of the latest requeued run
	sent       []sentCommand
}

var clientVerbs = map[string]store.Op{
	"schedule": store.Schedule, "reschedule": store.Reschedule, "cancel": store.Cancel, "pause": store.PauseTask,
	"resume": store.ResumeTask, "requeue": store.Requeue, "purge": store.Purge,
}

var reportVerbs = map[string]store.End{
	"done": store.Done, "retry": store.Retry, "failed": store.Failed, "handback": store.HandBack, "dropped": store.Dropped,
}

var (
	receiptNames   = []string{store.Refused: "refused", store.Accepted: "accepted", store.Overtaken: "overtaken"}
	extensionNames = []string{store.Lost: "lost", store.Held: "held", store.HeldStopping: "stopping"}
)

func (p *player) play(word string) {
	p.Helper()
	f := stepPattern.FindStringSubmatch(word)
	p.require(f != nil, "%q is not a step", word)
	s := &step{verb: f[1], name: f[2], timed: f[3] != "", options: strings.Split(f[4], ","), want: f[5]}
	if s.name == "" {
		s.name = "k"
	}
	s.n, _ = strconv.Atoi(f[3])
	s.id = p.idOf(s.name)
	got := p.carryOut(s)
	p.require(s.want == "" || got == s.want, "the result is %s, want %s", got, s.want)
}

// carryOut carries out a step and returns its result.
func (p *player) carryOut(s *step) (result string) {
	p.Helper()
	if op := clientVerbs[s.verb]; op != 0 {
		return p.sendClientCommand(s, op)
	}
	if end := reportVerbs[s.verb]; end != 0 {
		return p.sendOneReport(s, end)
	}
	switch s.verb {
	case "claim", "none":
		r := p.claimRound(10)
		r.MaxCrashes, r.Claim.Schedules = p.maxCrashes, []string{"daily"}
		got := p.sendStep(sentCommand{round: &r}).Tasks
		if s.verb == "none" {
			p.require(len(got) == 0, "claimed %+v, want nothing", got)
			break
		}
		p.require(len(got) == 1 && got[0].ID == s.id, "claimed %+v, want %q alone", got, s.id)
		p.leases[s.name] = append(p.leases[s.name], got[0])
	case "extend":
		r := p.emptyRound()
		r.Extend = []store.Lease{leaseOf(p.leaseOf(s))}
		return extensionNames[p.sendStep(sentCommand{round: &r}).Extensions[0]]
	case "crash":
		p.sleep(leaseUnits + 1)
	case "wait":
		p.sleep(s.n)
	case "crashes":
		p.maxCrashes = s.n
	case "is":
		e, err := p.Store.Get(ctx, 0, s.id)
		if err != nil {
			p.requireError(err, store.ErrNotFound)
			return "absent"
		}
		return e.State.String()
	case "record":
		return string(p.getEntry(s.id).Record)
	default:
		p.Fatalf("%q is not a verb", s.verb)
	}
	return ""
}

// idOf returns the id for a name in a step.
func (p *player) idOf(name string) string {
	switch name {
	case "dead":
		return store.DeadID("k")
	case "next":
		leases := p.leases["k"]
		return store.FollowUpID("k", leases[len(leases)-1].Token)
	case "single":
		for _, e := range p.allEntries() {
			if store.IsSingle(e.ID) && e.ID != store.DeadID("k") {
				p.single = e.ID
			}
		}
		return p.single
	}
	return name
}

func (p *player) whenOf(s *step) store.When {
	switch {
	case s.has("never"):
		return store.At(store.Farthest)
	case s.n < 0:
		return store.At(p.now() + store.Time(s.n))
	}
	return p.after(s.n)
}

var keeps = map[string]store.Keep{"any": store.KeepAny, "earlier": store.KeepEarlier, "later": store.KeepLater, "same": store.KeepSame}

// sendClientCommand sends a command for one task. The option g and a digit gives it a
// generation, and seen and stale a version: that of the task, or the one before.
func (p *player) sendClientCommand(s *step, op store.Op) string {
	p.Helper()
	x, c := store.Item{ID: s.id, Next: s.has("next"), Paused: s.has("paused")}, store.Command{Op: op}
	if op == store.Schedule || op == store.Reschedule || op == store.Requeue {
		x.When = p.whenOf(s)
	}
	if op == store.Schedule {
		x.Task = taskFor(s)
	}
	if x.Next {
		x.When = store.At(x.When.From(p.now()))
	}
	for _, o := range s.options {
		c.Keep = max(c.Keep, keeps[o])
		if len(o) == 2 && o[0] == 'g' {
			x.Generation = strings.Repeat(o[1:], store.GenerationSize)
		}
	}
	if s.has("seen") || s.has("stale") {
		p.compare() // so that the model knows the version
		e, _ := p.Store.Get(ctx, 0, s.id)
		if x.IfVersion = e.Version; s.has("stale") {
			x.IfVersion = max(1, e.Version-1)
		}
	}
	c.Items = append(c.Items, x)
	if s.has("twice") {
		c.Items = append(c.Items, x)
	}
	stamp := p.stamp()
	p.sent = append(p.sent, sentCommand{stamp: stamp, command: &c})
	outcomes, err := p.change(stamp, c)
	p.requireNoError(err)
	return outcomes[0].String()
}

// taskFor returns the task of a schedule step. Its options are every and a digit for a period,
// b for other content, daily for a schedule, follows for follow-ups, and x and hexadecimal
// digits for a record.
func taskFor(s *step) store.Task {
	t, body := task(s.id), byte(1)
	if s.has("b") {
		t.Record, body = []byte("another"), 2
	}
	for _, o := range s.options {
		switch {
		case o == "daily":
			t.Schedule = o
		case o == "follows":
			t.Group, t.Record = "grüp", followedRecord(slices.ContainsFunc(s.options, isPeriod))
		case isPeriod(o) && !s.has("follows"):
			t = periodicTask(s.id, o[len("every")]-'0', body)
		case strings.HasPrefix(o, "x"):
			t.Record = nil
			if o != "x" {
				t.Record, _ = hex.DecodeString(o[1:])
			}
		}
	}
	return t
}

// periodicTask returns a task with a period of p and another number, its body.
func periodicTask(id string, p, body byte) store.Task {
	return store.Task{ID: id, Handler: "h", Record: []byte{1, body, 0, 0, 0, 0, 0, 8, p, body}}
}

func isPeriod(option string) bool { return strings.HasPrefix(option, "every") }

// leaseOf returns the latest lease of a task, or with the option old the one before.
func (p *player) leaseOf(s *step) store.Claimed {
	leases := p.leases[s.name]
	if s.has("old") {
		leases = leases[:len(leases)-1]
	}
	return leases[len(leases)-1]
}

// sendOneReport sends a report. Its options are silent for no text, long for a long one, and
// keep for Report.Keep.
func (p *player) sendOneReport(s *step, end store.End) string {
	p.Helper()
	x := p.leaseOf(s)
	report := store.Report{Lease: leaseOf(x), End: end, Due: x.Due, Text: "text", Keep: s.has("keep")}
	switch {
	case s.has("silent"):
		report.Text = ""
	case s.has("long"):
		report.Text = strings.Repeat("ü", store.MaxText)
	}
	if s.timed || end == store.Retry {
		report.Next = p.whenOf(s)
	}
	r := p.emptyRound()
	r.Reports = []store.Report{report}
	return receiptNames[p.sendStep(sentCommand{round: &r}).Receipts[0]]
}

// sendStep sends a round.
func (p *player) sendStep(x sentCommand) store.Answer {
	p.Helper()
	x.stamp = p.stamp()
	p.sent = append(p.sent, x)
	a, err := p.do(x.stamp, *x.round)
	p.requireNoError(err)
	return a
}

// sendAgain sends the last commands and rounds again. The model judges the answers.
func (p *player) sendAgain() {
	p.Helper()
	if len(p.sent) == 0 {
		return
	}
	for _, x := range p.sent[max(0, len(p.sent)-2):] {
		p.send(x)
	}
	x := p.sent[len(p.sent)-1]
	x.stamp.Number--
	p.send(x)
	if len(p.sent)%4 == 0 {
		x.stamp = p.stamp()
		x.stamp.Until = p.now() - 1
		p.send(x)
		x.stamp.Until = 0
		p.send(x) // still too late
	}
	p.compareAtTimes()
}

// send sends a command or a round to shard 0. The model judges only the answer.
func (b *storeTest) send(x sentCommand) (a store.Answer) {
	b.Helper()
	if x.command != nil {
		outcomes, err := b.changeOnly(x.stamp, *x.command)
		b.judge.Change(b.now(), x.stamp, *x.command, outcomes, err)
		return a
	}
	a, err := b.Store.Do(ctx, 0, x.stamp, *x.round)
	b.judge.Do(b.now(), x.stamp, *x.round, a, err)
	return a
}

// repeatSteps returns steps n times.
func repeatSteps(n int, steps string) string { return strings.Repeat(steps+" ", n) }

// historiesFor returns a history for each of the values, which stand for %v in the steps.
func historiesFor[T any](rule, steps string, values ...T) (all []history) {
	for _, v := range values {
		all = append(all, history{rule, strings.ReplaceAll(steps, "%v", fmt.Sprint(v))})
	}
	return all
}
