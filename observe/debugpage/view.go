package debugpage

import (
	"fmt"
	"math"
	"time"
	"weak"

	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// schedulerView shows a Scheduler. In JSON, durations are in seconds.
type schedulerView struct {
	Name string `json:"name"`
	// Error is the reason why reading some or all numbers failed.
	Error string `json:"error,omitempty"`
	*numbersView
	*pendingView // nil unless the page shows details of this Scheduler
}

// HasNumbers reports whether the numbers could be read.
func (v *schedulerView) HasNumbers() bool { return v.numbersView != nil }

type numbersView struct {
	Counts   countsView    `json:"counts"`
	Rates    *ratesView    `json:"rates,omitempty"` // nil: not known yet
	Lateness histogramView `json:"lateness_seconds"`
	Executor executorView  `json:"executor"`
}

type countsView struct {
	Pending      int    `json:"pending"`
	Started      uint64 `json:"started"`
	Fired        uint64 `json:"fired"`
	Stopped      uint64 `json:"stopped"`
	Rejected     uint64 `json:"rejected"`
	FellBack     uint64 `json:"fell_back"`
	Refused      uint64 `json:"refused"`
	Panicked     uint64 `json:"panicked"`
	Wakeups      uint64 `json:"wakeups"`
	EmptyWakeups uint64 `json:"empty_wakeups"`
	Cascaded     uint64 `json:"cascaded"`
}

type executorView struct {
	Submitted   uint64 `json:"submitted"`
	Ran         uint64 `json:"ran"`
	Queued      int    `json:"queued"`
	Running     int    `json:"running"`
	Workers     int    `json:"workers"`
	PeakWorkers int    `json:"peak_workers"`
}

// newSchedulerView makes a schedulerView without the pending timers.
func (h *handler) newSchedulerView(r *metric.Reading) schedulerView {
	v := schedulerView{Name: r.Name}
	if r.Err != nil {
		v.Error = r.Err.Error()
		return v
	}
	st := r.Sample.(timer.Stats)
	v.numbersView = &numbersView{
		Counts: countsView{
			Pending: st.Pending, Started: st.Started, Fired: st.Fired, Stopped: st.Stopped,
			Rejected: st.Rejected, FellBack: st.FellBack, Refused: st.Refused, Panicked: st.Panicked,
			Wakeups: st.Wakeups, EmptyWakeups: st.EmptyWakeups, Cascaded: st.Cascaded,
		},
		Rates:    h.rateTracker.addReading(r.ID, &st),
		Lateness: newHistogramView(st.Lateness),
		Executor: executorView{
			Submitted: st.Executor.Submitted, Ran: st.Executor.Run, Queued: st.Executor.Queued,
			Running: st.Executor.Running, Workers: st.Executor.Workers, PeakWorkers: st.Executor.PeakWorkers,
		},
	}
	return v
}

// addPending adds the pending timers of a Scheduler. The Scheduler's clock may be user
// code, so addPending recovers a panic.
func (v *schedulerView) addPending(id any) {
	defer func() {
		if p := recover(); p != nil {
			v.Error = fmt.Sprintf("panic: %v", p)
		}
	}()
	if s := id.(weak.Pointer[timer.Scheduler]).Value(); s != nil && v.HasNumbers() {
		v.pendingView = newPendingView(s)
	}
}

// histogramView is a histogram with the buckets that the page draws.
type histogramView struct {
	Count   uint64       `json:"count"`
	Sum     float64      `json:"sum"`
	Max     float64      `json:"max"`
	P50     float64      `json:"p50"`
	P99     float64      `json:"p99"`
	Buckets []bucketView `json:"buckets"`
}

type bucketView struct {
	UpTo    float64 `json:"le"` // -1 for the last bucket, which has no end
	Count   uint64  `json:"count"`
	Label   string  `json:"-"`
	Percent float64 `json:"-"` // Count as a percentage of the largest in all buckets
}

// bucketLimits are the upper ends of the drawn buckets. The last bucket has no end.
var bucketLimits = []time.Duration{
	10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second,
}

func newHistogramView(h timer.Histogram) histogramView {
	v := histogramView{
		Count: h.Count(), Sum: h.Sum(), Max: h.Max().Seconds(),
		P50: h.Quantile(0.5).Seconds(), P99: h.Quantile(0.99).Seconds(),
	}
	for _, l := range bucketLimits {
		v.Buckets = append(v.Buckets, bucketView{UpTo: l.Seconds(), Label: formatDuration(l.Seconds())})
	}
	v.Buckets = append(v.Buckets, bucketView{UpTo: -1, Label: "longer"})
	i := 0
	for upTo, n := range h.Buckets() {
		for i < len(bucketLimits) && upTo > bucketLimits[i] {
			i++
		}
		v.Buckets[i].Count += n
	}
	maxCount := uint64(1)
	for _, b := range v.Buckets {
		maxCount = max(maxCount, b.Count)
	}
	for i := range v.Buckets {
		v.Buckets[i].Percent = percentOf(v.Buckets[i].Count, maxCount)
	}
	return v
}

// percentOf returns n as a percentage of total, rounded to three decimal places.
func percentOf[N int | uint64](n, total N) float64 {
	return math.Round(1e5*float64(n)/float64(total)) / 1e3
}
