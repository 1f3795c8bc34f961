package machine

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// keepRun stores a finished run of t as the run's [store.Keeping] asks.
func (m *machine) keepRun(t *Task, run *store.Task, done bool, failures []store.Failure, result []byte) {
	k, ok := run.Keeps()
	if !ok {
		return
	}
	keepsHistory, blocksKey := k.For > 0 || k.Most > 0, done && k.Unique > 0
	if !keepsHistory && !blocksKey {
		return
	}
	m.keptRuns++
	key := store.KeyOf(t.ID)
	headEntry := m.findOrAdd(store.HeadID(key))
	headEntry.Handler, headEntry.Group = run.Handler, run.Group
	if headEntry.At <= m.now { // it is new, or has expired with all its runs
		headEntry.Runs, headEntry.Due = 0, 0
	}
	if blocksKey {
		headEntry.Due = m.now.Add(k.Unique)
	}
	headExpiry := headEntry.Due
	if keepsHistory {
		id := runID(key, k, headEntry.Runs)
		headEntry.Runs++
		runExpiry := store.Farthest
		if k.For > 0 {
			runExpiry = m.now.Add(k.For)
		}
		runEntry := m.findOrAdd(id)
		runEntry.Handler, runEntry.Group, runEntry.Record = run.Handler, run.Group, store.RunRecord(done, m.now, result)
		runEntry.Due, runEntry.Attempts, runEntry.Crashes, runEntry.Failures = t.Due, t.Attempts, t.Crashes, failures
		m.setState(runEntry, store.Past, runExpiry)
		headExpiry = max(headExpiry, runExpiry)
	}
	m.setState(headEntry, store.Past, max(headEntry.At, headExpiry))
}

// runID returns the id of the entry for the next run of a key that has had some runs.
func runID(key string, k store.Keeping, runs int) string {
	if k.Most > 0 {
		runs %= k.Most
	}
	return store.RunID(key, runs)
}

// NextRunID returns the id of the entry that a finished run of t will have, so that stores can
// read it in advance. head is the key's head entry, or has no State.
func (t *Task) NextRunID(head *Task) (id string, ok bool) {
	k, ok := t.Keeps()
	return runID(store.KeyOf(t.ID), k, head.Runs), ok && t.State == store.Running && k.For+time.Duration(k.Most) > 0
}

// dropHead removes the head entry of a key whose run is purged, if it counts only that run and
// does not block the key.
func (m *machine) dropHead(key string) {
	if head := m.index.Find(store.HeadID(key)); head != nil && head.Runs == 1 && head.Due <= m.now {
		m.removeTask(head)
	}
}

func (m *machine) findOrAdd(id string) *Task {
	if t := m.index.Find(id); t != nil {
		return t
	}
	return m.addTask(store.Task{ID: id})
}

// succeededRecently reports whether Keeping.Unique forbids scheduling x now.
func (m *machine) succeededRecently(x *store.Task) bool {
	if k, ok := x.Keeps(); !ok || k.Unique == 0 {
		return false
	}
	headEntry := m.index.Find(store.HeadID(x.ID))
	return headEntry != nil && headEntry.Due > m.now
}

const (
	// expiredPerClaim is how many expired entries a claim deletes, and expiredPerRun how many
	// more for each run that its round has kept. Keeping a run adds at most two entries, so
	// the expired ones cannot become many.
	expiredPerClaim = 100
	expiredPerRun   = 4
	// A worker without tasks claims every expiryInterval while entries expire, and every
	// expiryPause while many have expired.
	expiryInterval = time.Second
	expiryPause    = 10 * time.Millisecond
)

// deleteExpired deletes some expired entries. It returns when a claim should delete others,
// or Never.
func (m *machine) deleteExpired() (next store.Time) {
	if m.numbers.Past == 0 {
		return Never
	}
	for _, t := range m.index.Over(m.now, expiredPerClaim+expiredPerRun*m.keptRuns) {
		m.removeTask(t)
	}
	switch next = m.index.Expiry(); {
	case next >= store.Farthest:
		return Never
	case next <= m.now:
		return m.now.Add(expiryPause)
	}
	return max(next, m.now.Add(expiryInterval))
}

// addFollowUp adds the task that follows a run of t, if the run's task asks for one.
func (m *machine) addFollowUp(t *Task, run *store.Task, done bool, text string) {
	x, ok := run.FollowUp(store.RunEnd{Done: done, Due: t.Due, Attempts: t.Attempts, Crashes: t.Crashes, Text: text}, t.Token)
	if ok && m.index.Find(x.ID) == nil {
		followUp := m.addTask(x)
		followUp.Version = t.Token
		m.makePending(followUp, m.now)
	}
}
