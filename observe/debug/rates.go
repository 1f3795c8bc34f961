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

// rateTracker keeps the counts of Schedulers at earlier requests.
type rateTracker struct {
	mu           sync.Mutex
	readingsByID map[any]*twoReadings // by the Scheduler's ID
}

// twoReadings contains the last two readings that are at least minRateTime apart.
type twoReadings struct{ older, newer reading }

type reading struct {
	readAt                  time.Time
	started, stopped, fired uint64
}

type ratesView struct {
	Started float64 `json:"started_per_second"`
	Stopped float64 `json:"stopped_per_second"`
	Fired   float64 `json:"fired_per_second"`
	Seconds float64 `json:"over_seconds"`
}

// addReading adds a reading of a Scheduler. It returns the rates, or nil if there are
// none.
func (r *rateTracker) addReading(id any, st *timer.Stats) *ratesView {
	current := reading{time.Now(), st.Started, st.Stopped, st.Fired}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.readingsByID[id]
	if c == nil {
		c = &twoReadings{current, current}
		r.readingsByID[id] = c
	}
	if current.readAt.Sub(c.newer.readAt) >= minRateTime {
		c.older, c.newer = c.newer, current
		if current.readAt.Sub(c.older.readAt) > maxRateTime {
			c.older = current
		}
	}
	d := current.readAt.Sub(c.older.readAt).Seconds()
	if d < minRateTime.Seconds() {
		return nil
	}
	return &ratesView{
		Started: float64(current.started-c.older.started) / d,
		Stopped: float64(current.stopped-c.older.stopped) / d,
		Fired:   float64(current.fired-c.older.fired) / d,
		Seconds: d,
	}
}

// retainOnly drops the counts of Schedulers that are not among the readings.
func (r *rateTracker) retainOnly(readings []metric.Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldHistory := r.readingsByID
	r.readingsByID = make(map[any]*twoReadings, len(readings))
	for i := range readings {
		if c := oldHistory[readings[i].ID]; c != nil {
			r.readingsByID[readings[i].ID] = c
		}
	}
}
