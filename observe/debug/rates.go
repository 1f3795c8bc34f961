package debug

import (
	"sync"
	"time"

	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// Rates compare the present counts with those of an earlier request, at least minRateTime
// and at most maxRateTime ago.
const (
	minRateTime = 500 * time.Millisecond
	maxRateTime = time.Minute
)

// rates keeps the counts of Schedulers at earlier requests.
type rates struct {
	mu      sync.Mutex
	history map[any]*twoReadings // by the Scheduler's ID
}

// twoReadings contains the last two readings that are at least minRateTime apart.
type twoReadings struct{ before, last reading }

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

// update adds a reading of a Scheduler. It returns the rates, or nil if there are none.
func (r *rates) update(id any, st *timer.Stats) *ratesView {
	now := reading{time.Now(), st.Started, st.Stopped, st.Fired}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.history[id]
	if c == nil {
		c = &twoReadings{now, now}
		r.history[id] = c
	}
	if now.at.Sub(c.last.at) >= minRateTime {
		c.before, c.last = c.last, now
		if now.at.Sub(c.before.at) > maxRateTime {
			c.before = now
		}
	}
	d := now.at.Sub(c.before.at).Seconds()
	if d < minRateTime.Seconds() {
		return nil
	}
	return &ratesView{
		Started: float64(now.started-c.before.started) / d,
		Stopped: float64(now.stopped-c.before.stopped) / d,
		Fired:   float64(now.fired-c.before.fired) / d,
		Seconds: d,
	}
}

// retain drops the counts of Schedulers that are not among the readings.
func (r *rates) retain(readings []metric.Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.history
	r.history = make(map[any]*twoReadings, len(readings))
	for i := range readings {
		if c := old[readings[i].ID]; c != nil {
			r.history[readings[i].ID] = c
		}
	}
}
