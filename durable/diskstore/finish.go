package diskstore

import (
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// finish takes a report, and returns what has become of it.
func (sh *shard) finish(r *store.Report) store.Receipt {
	t := sh.held(r.Hold)
	if t == nil {
		sh.Refused++
		return store.Refused
	}
	switch r.End {
	case store.Done:
		sh.Done++
	case store.HandBack:
		sh.Released++
	}
	over := r.End == store.Done && r.Next.IsZero()
	if !over {
		sh.load(t)
	}
	sh.remove(t)
	switch {
	case sh.follow(t):
		return store.Overtaken
	case over:
		return store.Accepted
	}
	t.Due = r.Due
	at := r.Next.From(sh.now)
	switch r.End {
	case store.Done:
		sh.fresh(t, at)
	case store.Failed, store.Dropped:
		if r.End == store.Dropped {
			t.Attempts--
		}
		if r.Next.IsZero() {
			sh.bury(t, r.Text)
			break
		}
		sh.buryRun(t, r.Text)
		sh.fresh(t, at)
	case store.Retry:
		sh.Retried++
		t.Failures = store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: sh.now, Text: r.Text})
		sh.wait(t, at)
	case store.HandBack:
		t.Attempts-- // it does not count
		if r.Next.IsZero() {
			at = r.Due
		}
		sh.wait(t, at)
	}
	return store.Accepted
}

// buryRun makes a dead letter of a run of a task that repeats. It takes the place of
// the one that the task has, so that a task that fails for ever has one.
func (sh *shard) buryRun(t *task, text string) {
	x := t.Task
	x.ID = store.DeadID(t.ID)
	runs, failures := 1, t.Failures
	if there := sh.find(x.ID); there != nil {
		runs += there.Runs
		failures = slices.Concat(there.Failures, failures)
		sh.remove(there)
	}
	run := sh.add(x)
	run.Due, run.Attempts, run.Crashes, run.Failures, run.Runs = t.Due, t.Attempts, t.Crashes, failures, runs
	sh.bury(run, text)
}
