package diskstore

import (
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timingwheel"
)

// The methods here move a task from one place to another. What has moved is written at
// the end of the batch: see write.go.

// touch says that the batch under way has changed a task.
func (sh *shard) touch(t *task) {
	if !t.touched {
		t.touched = true
		sh.touched = append(sh.touched, t)
	}
}

// remove takes a task out of its place.
func (sh *shard) remove(t *task) {
	sh.touch(t)
	switch t.State {
	case store.Pending:
		sh.leave(t)
		sh.pending--
	case store.Running:
		sh.leases.Remove(t.place)
		sh.running--
	case store.Dead:
		sh.dead--
	}
	t.State, t.place = 0, timingwheel.ID{}
}

// wait makes a task that is in no place Pending, due at a time.
func (sh *shard) wait(t *task, at store.Time) {
	sh.touch(t)
	t.State, t.At, t.Token = store.Pending, at, 0
	t.Stopping, t.Following, t.Next, t.NextTask = false, false, 0, nil
	t.sender, t.number = "", 0
	t.body = true
	sh.pending++
	t.kind = sh.kindFor(t.Handler, t.Schedule)
	sh.place(t, sh.now)
	if at < sh.told {
		sh.told = at
		sh.s.wake(sh.index)
	}
}

// fresh makes a task that is in no place Pending, with nothing tried.
func (sh *shard) fresh(t *task, at store.Time) {
	t.Due, t.Attempts, t.Crashes, t.Failures, t.Runs = at, 0, 0, nil, 0
	sh.wait(t, at)
}

// run gives a task that is in no place a lease until a time.
func (sh *shard) run(t *task, until store.Time) {
	sh.touch(t)
	t.State, t.At = store.Running, until
	sh.running++
	t.place, _ = sh.leases.Add(int64(until), t) // a lease is never over when it is given
}

// bury makes a dead letter of a task that is in no place.
func (sh *shard) bury(t *task, text string) {
	t.Failures = store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: sh.now, Text: text})
	sh.rest(t, sh.now)
	sh.Died++
}

// rest makes a task that is in no place Dead since a time.
func (sh *shard) rest(t *task, since store.Time) {
	sh.touch(t)
	t.State, t.At, t.Token = store.Dead, since, 0
	t.Stopping, t.Following, t.Next, t.NextTask = false, false, 0, nil
	t.sender, t.number = "", 0
	t.body = true
	t.kind = sh.kindFor(t.Handler, t.Schedule)
	sh.dead++
}

// add makes a task that is in no place. There is none with its id.
func (sh *shard) add(x store.Task) *task {
	t := sh.tasks[x.ID]
	if t == nil {
		t = sh.newTask()
		sh.tasks[x.ID] = t
	}
	sh.filter.add(x.ID)
	sh.touch(t)
	t.Entry, t.whole, t.body = store.Entry{Task: x}, true, true
	return t
}

// kindFor returns the kind of tasks with a handler and a schedule.
func (sh *shard) kindFor(handler, schedule string) *kind {
	if k := sh.latest; k != nil && k.handler == handler && k.schedule == schedule {
		return k
	}
	k := sh.byName[[2]string{handler, schedule}]
	if k == nil {
		sh.numbers.kinds++
		k = &kind{id: sh.numbers.kinds, handler: handler, schedule: schedule, mark: everything}
		sh.addKind(k)
		w := writer{[]byte{recordVersion}}
		w.string(handler)
		w.string(schedule)
		sh.set(appendKind(nil, sh.index, spaceKind, k.id), w.b)
	}
	sh.latest = k
	return k
}

func (sh *shard) addKind(k *kind) {
	sh.byID[k.id] = k
	sh.byName[[2]string{k.handler, k.schedule}] = k
	sh.kinds = append(sh.kinds, k)
}
