package timer

import (
	"sync"
	"time"

	"github.com/tickless/tickless/internal/wheel"
)

// lateness is how late timers were fired, and whose fault it was.
//
// A timer that fires late has waited for the alarm first, if it was due before that
// has rung: the alarm had been set for the earliest of those timers, and by how much it
// was late is all that its being late can have cost any of them. What is left of the
// timer's lateness it has waited for the poller, which was busy with others.
type lateness struct {
	mu sync.Mutex
	// fired is the lateness of timers that the poller has fired, alarm that of the
	// alarm's rings; nil if there are none.
	fired, alarm *Histogram
	// byAlarm and byPoller are the parts of fired's sum, slack is by how much timers
	// were due after their deadlines. They saturate.
	byAlarm, byPoller, slack int64
}

// rang records a ring of the alarm.
func (l *lateness) rang(overdue int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alarm == nil {
		l.alarm = new(Histogram)
	}
	l.alarm.Record(time.Duration(overdue))
}

func (l *lateness) stats(st *Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fired != nil {
		st.Lateness.Merge(*l.fired)
	}
	if l.alarm != nil {
		st.AlarmLateness.Merge(*l.alarm)
	}
	st.LateByAlarm, st.LateByPoller = time.Duration(l.byAlarm), time.Duration(l.byPoller)
	st.SlackUsed = time.Duration(l.slack)
}

// recordLateness records the lateness of timers that are about to fire.
func (d *drainer) recordLateness(expired []wheel.Expired[payload], at moment) {
	p := d.p
	l := &p.late
	after := int64(notablyLate)
	if p.s.config.onLate != nil {
		after = int64(p.s.config.lateAfter)
	}
	from := d.latestLate(expired, at.now, after)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fired == nil {
		l.fired = new(Histogram)
	}
	for i := range expired {
		e := &expired[i]
		late := max(0, at.now-e.Due)
		l.fired.Record(time.Duration(late))
		byAlarm := min(max(0, d.rang-e.Due), d.overdue)
		saturate(&l.byAlarm, byAlarm)
		saturate(&l.byPoller, late-byAlarm)
		saturate(&l.slack, e.Due-e.Deadline)
		if late >= after && i >= from {
			d.noteLate(e, at, byAlarm)
		}
	}
}

// saturate adds to a sum that never falls.
func saturate(sum *int64, d int64) { *sum = deadlineAfter(*sum, time.Duration(max(0, d))) }

// latestLate returns from where on the timers that are late by after or more are to be
// noted: all, if somebody is told of them, else the last ones that will be kept. To note
// one takes a look at its callback, which is cold as a rule, and the shard is locked.
func (d *drainer) latestLate(expired []wheel.Expired[payload], now, after int64) int {
	if d.p.s.config.onLate != nil {
		return 0
	}
	from := len(expired)
	for kept := 0; from > 0 && kept < recentKept; {
		from--
		if max(0, now-expired[from].Due) >= after {
			kept++
		}
	}
	return from
}

// noteLate keeps a timer that fires notably late. The shard's lock is held.
func (d *drainer) noteLate(e *wheel.Expired[payload], at moment, byAlarm int64) {
	kind, pc := e.Value.describe(e.Tag)
	t := LateTimer{Due: d.p.s.at(e.Due), Fired: at.time, Kind: kind, ByAlarm: time.Duration(byAlarm), pc: pc}
	d.p.recent.add(t)
	if d.p.s.config.onLate != nil {
		d.toTell = append(d.toTell, t)
	}
}

// tellLate tells the user's handler of timers that were fired late.
func (d *drainer) tellLate() {
	for d.told < len(d.toTell) {
		t := d.toTell[d.told]
		d.told++ // first: the handler may end the goroutine, and another goes on
		d.p.s.config.onLate(t)
	}
	d.toTell, d.told = d.toTell[:0], 0
}
