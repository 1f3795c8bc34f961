package debugpage

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// Rates compare the present numbers with those of an earlier request, at least minRateTime
// and at most maxRateTime ago: the latest that is at least rateTime ago, or else the first.
const (
	minRateTime = 500 * time.Millisecond
	rateTime    = 10 * time.Second
	maxRateTime = time.Minute
)

// The page draws the numbers of the requests of the last historyTime, at most one in each
// historyStep.
const (
	historyTime = 2 * time.Minute
	historyStep = time.Second
)

// rateTracker keeps the numbers of Schedulers at earlier requests.
type rateTracker struct {
	mu           sync.Mutex
	readingsByID map[any][]reading // by the Scheduler's ID, oldest first
}

// reading are the numbers of a Scheduler at a request.
type reading struct {
	readAt                  time.Time
	pending                 int
	started, stopped, fired uint64
	p99                     float64       // of ratesView
	lateness                []bucketCount // nil if no later rates need it
}

type bucketCount struct {
	limit time.Duration
	count uint64
}

// ratesView are the rates and the lateness in a window of time.
type ratesView struct {
	Started float64 `json:"started_per_second"`
	Stopped float64 `json:"stopped_per_second"`
	Fired   float64 `json:"fired_per_second"`
	// P99 is the 99th percentile of the lateness of timers that fired in the window, 0 if
	// none did.
	P99     float64 `json:"late_p99_seconds"`
	Seconds float64 `json:"over_seconds"` // the length of the window

	firedAny bool
	history  []reading
}

// HasFired reports whether a timer fired in the window.
func (v *ratesView) HasFired() bool { return v.firedAny }

// addReading adds a reading of a Scheduler. It returns the rates, or nil if there are
// none.
func (r *rateTracker) addReading(id any, st *timer.Stats) *ratesView {
	current := reading{readAt: time.Now(), pending: st.Pending, started: st.Started, stopped: st.Stopped, fired: st.Fired}
	for limit, n := range st.Lateness.Buckets() {
		if n > 0 {
			current.lateness = append(current.lateness, bucketCount{limit, n})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	readings := r.readingsByID[id]
	for len(readings) > 0 && current.readAt.Sub(readings[0].readAt) > historyTime {
		readings = readings[1:]
	}
	base := 0
	for base+1 < len(readings) && current.readAt.Sub(readings[base+1].readAt) >= rateTime {
		readings[base].lateness = nil
		base++
	}
	var v *ratesView
	if len(readings) > 0 {
		v = ratesBetween(&readings[base], &current)
	}
	if v != nil {
		current.p99 = v.P99
	}
	if len(readings) == 0 || current.readAt.Sub(readings[len(readings)-1].readAt) >= historyStep {
		readings = append(readings, current)
	}
	r.readingsByID[id] = readings
	if v != nil {
		v.history = append(v.history, readings...)
	}
	return v
}

// ratesBetween returns the rates between two readings, or nil if their times do not allow
// it.
func ratesBetween(a, b *reading) *ratesView {
	d := b.readAt.Sub(a.readAt)
	if d < minRateTime || d > maxRateTime {
		return nil
	}
	v := &ratesView{
		Started: float64(b.started-a.started) / d.Seconds(),
		Stopped: float64(b.stopped-a.stopped) / d.Seconds(),
		Fired:   float64(b.fired-a.fired) / d.Seconds(),
		Seconds: d.Seconds(),
	}
	before := make(map[time.Duration]uint64, len(a.lateness))
	for _, c := range a.lateness {
		before[c.limit] = c.count
	}
	var total, upTo uint64
	for _, c := range b.lateness {
		total += c.count - before[c.limit]
	}
	v.firedAny = total > 0
	for _, c := range b.lateness {
		upTo += c.count - before[c.limit]
		if v.firedAny && 100*upTo >= 99*total {
			v.P99 = c.limit.Seconds()
			break
		}
	}
	return v
}

// lineView is a line through the values of a number in the last historyTime.
type lineView struct {
	Points string // for a polyline in a box of lineWidth by lineHeight
	Text   string // the description
}

const lineWidth, lineHeight = 120, 20

// Lines returns the lines of the numbers, by their names on the page. It returns none if
// there are too few readings.
func (v *ratesView) Lines() map[string]lineView {
	if len(v.history) < 3 {
		return nil
	}
	lines := make(map[string]lineView)
	for name, value := range map[string]func(a, b reading, seconds float64) float64{
		"pending": func(_, b reading, _ float64) float64 { return float64(b.pending) },
		"started": func(a, b reading, seconds float64) float64 { return float64(b.started-a.started) / seconds },
		"stopped": func(a, b reading, seconds float64) float64 { return float64(b.stopped-a.stopped) / seconds },
		"fired":   func(a, b reading, seconds float64) float64 { return float64(b.fired-a.fired) / seconds },
		"p99":     func(_, b reading, _ float64) float64 { return b.p99 },
	} {
		values := make([]float64, 0, len(v.history)-1)
		highest := 0.0
		for i := 1; i < len(v.history); i++ {
			a, b := v.history[i-1], v.history[i]
			values = append(values, value(a, b, b.readAt.Sub(a.readAt).Seconds()))
			highest = max(highest, values[i-1])
		}
		end := v.history[len(v.history)-1].readAt
		var points strings.Builder
		for i, f := range values {
			x := lineWidth * (1 - end.Sub(v.history[i+1].readAt).Seconds()/historyTime.Seconds())
			y := lineHeight * (1 - f/max(highest, 1e-9))
			fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
		}
		text := "last 2 min, at most " + formatFigure(highest)
		if name == "p99" {
			text = "last 2 min, at most " + formatDuration(highest)
		}
		lines[name] = lineView{strings.TrimSpace(points.String()), text}
	}
	return lines
}

// retainOnly drops the readings of Schedulers that are not among these.
func (r *rateTracker) retainOnly(readings []metric.Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.readingsByID
	r.readingsByID = make(map[any][]reading, len(readings))
	for i := range readings {
		if c := old[readings[i].ID]; c != nil {
			r.readingsByID[readings[i].ID] = c
		}
	}
}
