package machine

import (
	"math"

	"github.com/tickless/tickless/durable/store"
)

// A Limit is a handler's limit and the state to enforce it, and the handler's pause. Either
// may be zero, but not both. Stores may encode it as JSON.
type Limit struct {
	store.Limit
	Running int64      // Running tasks of the handler
	Full    store.Time // the time from which a full burst may be claimed at once
	// Kept is true while Concurrency holds back a due task. New tasks of the handler
	// then wake no worker. The end of a running task wakes the workers.
	Kept bool
	// Paused is when the handler was paused, or 0 if it is not. Note says why.
	Paused store.Time `json:",omitempty"`
	Note   string     `json:",omitempty"`
}

// available returns how many tasks may be claimed now. If only the Rate forbids a claim,
// nextAt is when the next task may be claimed.
func (l *Limit) available(now store.Time) (n int64, nextAt store.Time) {
	n, nextAt = math.MaxInt32, Never
	if l.Concurrency > 0 {
		n = max(0, int64(l.Concurrency)-l.Running)
	}
	if interval, burst := l.Pace(); n > 0 && interval > 0 {
		latestFullAt := now + interval*store.Time(burst)
		n = min(n, int64((latestFullAt-l.fullAt(now))/interval))
		nextAt = l.fullAt(now) + interval - interval*store.Time(burst)
	}
	return n, nextAt
}

// fullAt returns Full, limited to a possible time: the clock or the Rate may have changed.
func (l *Limit) fullAt(now store.Time) store.Time {
	interval, burst := l.Pace()
	return min(max(l.Full, now), now+interval*store.Time(burst))
}

func (m *machine) limitOf(handler string) *Limit {
	if m.numbers.Limits == 0 {
		return nil
	}
	return m.index.Limits()[handler]
}

// takePermit counts a claimed task for its handler's limit.
func (m *machine) takePermit(t *Task) {
	if l := m.limitOf(t.Handler); l != nil {
		interval, _ := l.Pace()
		l.Running++
		l.Full = l.fullAt(m.now) + interval
		m.takeGroupPermit(t, l)
	}
}

// returnPermit stops counting a task whose attempt ends.
func (m *machine) returnPermit(t *Task) {
	if l := m.limitOf(t.Handler); l != nil {
		if l.Kept && l.Running == int64(l.Concurrency) {
			m.freedLimits = append(m.freedLimits, l)
		}
		l.Running--
	}
	m.returnGroupPermit(t)
}

// wakeForFreedLimits wakes other workers for tasks that a limit has held back, if attempts
// that ended in this round leave room for them.
func (m *machine) wakeForFreedLimits() {
	for _, l := range m.freedLimits {
		if l.Kept && l.Running < int64(l.Concurrency) {
			l.Kept = false
			m.numbers.Wakes++
		}
	}
}

// Recount corrects each limit's number of running tasks, in case another program has
// changed the stored tasks. It reports whether a number was wrong.
func Recount(index Index) (corrected bool) {
	n := index.Numbers()
	if n.Limits == 0 && n.Groups == 0 {
		return false
	}
	m := &machine{index: index, numbers: n, now: n.Wall}
	runningByHandler := make(map[string]int64)
	for _, t := range index.Running(Never) {
		runningByHandler[t.Handler]++
	}
	for h, l := range index.Limits() {
		if l.Running != runningByHandler[h] {
			l.Running, l.Kept, corrected = runningByHandler[h], false, true
		}
	}
	if corrected {
		n.Wakes++
	}
	return m.recountGroups() || corrected
}

func (m *machine) setLimit(handler string, limit store.Limit) store.Outcome {
	m.numbers.Wakes++
	l, none, outcome := m.index.Limits()[handler], store.Limit{}, store.Replaced
	switch isRemoval, hadLimit := limit == none, l != nil && l.Limit != none; {
	case isRemoval && !hadLimit:
		return store.Absent
	case isRemoval:
		outcome = store.Removed
	case !hadLimit:
		outcome = store.Created
	}
	if l = m.findOrAddLimit(handler); l == nil {
		return store.Kept
	}
	l.Limit, l.Kept = limit, false
	if outcome != store.Replaced {
		l.Full = 0
	}
	m.dropUnusedLimit(handler)
	m.touchGroupsOf(handler)
	m.recountGroups()
	return outcome
}

func (m *machine) pauseHandler(handler, note string) store.Outcome {
	l := m.findOrAddLimit(handler)
	if l == nil {
		return store.Kept
	}
	m.numbers.Wakes++
	outcome := store.Replaced
	if l.Paused == 0 {
		l.Paused, outcome = max(1, m.now), store.Created
	}
	l.Note = note
	return outcome
}

func (m *machine) resumeHandler(handler string) store.Outcome {
	l := m.index.Limits()[handler]
	if l == nil || l.Paused == 0 {
		return store.Absent
	}
	m.numbers.Wakes++
	l.Paused, l.Note = 0, ""
	m.dropUnusedLimit(handler)
	return store.Removed
}

// findOrAddLimit returns the Limit of a handler, with its present number of running tasks. It
// returns nil if there are too many Limits for another.
func (m *machine) findOrAddLimit(handler string) *Limit {
	limits := m.index.Limits()
	if l := limits[handler]; l != nil {
		return l
	}
	if len(limits) >= store.MaxLimits {
		return nil
	}
	l := new(Limit)
	limits[handler] = l
	m.numbers.Limits++
	for _, t := range m.index.Running(Never) {
		if t.Handler == handler {
			l.Running++
		}
	}
	return l
}

// dropUnusedLimit removes a Limit that neither limits nor pauses its handler.
func (m *machine) dropUnusedLimit(handler string) {
	limits := m.index.Limits()
	if l := limits[handler]; l.Limit == (store.Limit{}) && l.Paused == 0 {
		delete(limits, handler)
		m.numbers.Limits--
	}
}

// pausedHandlers returns those of the handlers that are paused.
func (m *machine) pausedHandlers(handlers []string) (paused []string) {
	for _, h := range handlers {
		if l := m.limitOf(h); l != nil && l.Paused != 0 {
			paused = append(paused, h)
		}
	}
	return paused
}

// NotePause sets HandlerPaused of a stored entry. limits are those of its shard.
func NotePause(e *store.Entry, limits map[string]*Limit) {
	l := limits[e.Handler]
	e.HandlerPaused = l != nil && l.Paused != 0 && e.State == store.Pending
}
