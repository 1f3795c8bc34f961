package memstore

import (
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// finish takes a report, and returns what has become of it.
func (sh *shard) finish(r *store.Report, now store.Time) store.Receipt {
	t := sh.held(r.Hold)
	if t == nil {
		sh.n.Refused++
		return store.Refused
	}
	switch r.End {
	case store.Done:
		sh.n.Done++
	case store.HandBack:
		sh.n.Released++
	}
	sh.remove(t)
	if sh.follow(t) {
		return store.Overtaken
	}
	t.Due = r.Due
	switch r.End {
	case store.Done:
		sh.repeats(t, r, now)
	case store.Failed, store.Dropped:
		if r.End == store.Dropped {
			t.Attempts--
		}
		if r.Next.IsZero() {
			sh.bury(t, now, r.Text)
			break
		}
		sh.buryRun(t, now, r.Text)
		sh.repeats(t, r, now)
	case store.Retry:
		sh.n.Retried++
		t.Failures = store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: now, Text: r.Text})
		sh.wait(t, r.Next.From(now))
	case store.HandBack:
		t.Attempts-- // it does not count
		at := r.Due
		if !r.Next.IsZero() {
			at = r.Next.From(now)
		}
		sh.wait(t, at)
	}
	return store.Accepted
}

// repeats is for a run that is over.
func (sh *shard) repeats(t *task, r *store.Report, now store.Time) {
	if r.Next.IsZero() {
		sh.forget(t)
		return
	}
	sh.fresh(t, r.Next.From(now))
}

// buryRun makes a dead letter of a run of a task that repeats. It takes the place of
// the one that the task has, so that a task that fails for ever has one.
func (sh *shard) buryRun(t *task, now store.Time, text string) {
	id := store.DeadID(t.ID)
	runs, failures := 1, t.Failures
	if there := sh.tasks[id]; there != nil {
		runs += there.Runs
		failures = slices.Concat(there.Failures, failures)
		sh.remove(there)
	}
	x := t.Task
	x.ID = id
	run := sh.add(x)
	run.Due, run.Attempts, run.Crashes, run.Failures, run.Runs = t.Due, t.Attempts, t.Crashes, failures, runs
	sh.bury(run, now, text)
}
