package debug

import (
	"sync"
	"time"

	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// A rate is the difference to an earlier request, of any client, that came at least
// rateApart and at most rateStale ago. If there was no such request, there are no rates.
const (
	rateApart = 500 * time.Millisecond
	rateStale = time.Minute
)

// rates keeps earlier counts of Schedulers.
type rates struct {
	mu   sync.Mutex
	seen map[any]*counted // by the Scheduler's ID
}

// counted contains the last two readings that are at least rateApart apart.
type counted struct{ before, last reading }

type reading struct {
	at                      time.Time
	started, stopped, fired uint64
}

type ratesView struct {
	Started float64 `json:"started_per_second"`
	Stopped float64 `json:"stopped_per_second"`
	Fired   float64 `json:"fired_per_second"`
	Seconds float64 `json:"over_seconds"`
}

// of returns the rates of a Scheduler, or nil if they are not known yet.
func (r *rates) of(id any, st *timer.Stats) *ratesView {
	now := reading{time.Now(), st.Started, st.Stopped, st.Fired}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.seen[id]
	if c == nil {
		c = &counted{now, now}
		r.seen[id] = c
	}
	if now.at.Sub(c.last.at) >= rateApart {
		c.before, c.last = c.last, now
		if now.at.Sub(c.before.at) > rateStale {
			c.before = now
		}
	}
	d := now.at.Sub(c.before.at).Seconds()
	if d < rateApart.Seconds() {
		return nil
	}
	return &ratesView{
		Started: float64(now.started-c.before.started) / d,
		Stopped: float64(now.stopped-c.before.stopped) / d,
		Fired:   float64(now.fired-c.before.fired) / d,
		Seconds: d,
	}
}

// retain drops the Schedulers that are not among the readings.
func (r *rates) retain(readings []metric.Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.seen
	r.seen = make(map[any]*counted, len(readings))
	for i := range readings {
		if c := before[readings[i].ID]; c != nil {
			r.seen[readings[i].ID] = c
		}
	}
}
