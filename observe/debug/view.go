package debug

import (
	"fmt"
	"math"
	"time"

	"github.com/tickless/tickless/timer"
)

// schedulerView is what is shown of a Scheduler. Its JSON has durations in seconds.
type schedulerView struct {
	Name string `json:"name"`
	// Error is why the numbers could not be read. Then there are none.
	Error string `json:"error,omitempty"`
	*schedulerNumbers
}

type schedulerNumbers struct {
	Counts   countsView    `json:"counts"`
	Rates    *ratesView    `json:"rates,omitempty"` // nil: not known yet
	Lateness histogramView `json:"lateness_seconds"`
	Executor executorView  `json:"executor"`
	pendingView
}

type countsView struct {
	Pending      int    `json:"pending"`
	Started      uint64 `json:"started"`
	Fired        uint64 `json:"fired"`
	Stopped      uint64 `json:"stopped"`
	Rejected     uint64 `json:"rejected"`
	RejectedFull uint64 `json:"rejected_full"`
	FellBack     uint64 `json:"fell_back"`
	Dropped      uint64 `json:"dropped"`
	Queued       int    `json:"queued"`
	Panicked     uint64 `json:"panicked"`
	Wakeups      uint64 `json:"wakeups"`
	EmptyWakeups uint64 `json:"empty_wakeups"`
	Cascaded     uint64 `json:"cascaded"`
}

type ratesView struct {
	Started float64 `json:"started_per_second"`
	Stopped float64 `json:"stopped_per_second"`
	Fired   float64 `json:"fired_per_second"`
	Seconds float64 `json:"over_seconds"`
}

type histogramView struct {
	Count   uint64       `json:"count"`
	Sum     float64      `json:"sum"`
	Max     float64      `json:"max"`
	P50     float64      `json:"p50"`
	P99     float64      `json:"p99"`
	Buckets []bucketView `json:"buckets"`
	Rows    []rowView    `json:"-"` // a coarser one
}

type bucketView struct {
	UpTo  float64 `json:"le"`
	Count uint64  `json:"count"`
}

type rowView struct {
	Label   string
	Count   uint64
	Percent float64 // of the largest
}

type executorView struct {
	Submitted   uint64 `json:"submitted"`
	Ran         uint64 `json:"ran"`
	Rejected    uint64 `json:"rejected"`
	CallerRan   uint64 `json:"caller_ran"`
	Queued      int    `json:"queued"`
	Running     int    `json:"running"`
	Workers     int    `json:"workers"`
	PeakWorkers int    `json:"peak_workers"`
}

// summary is what the list of Schedulers shows of one.
type summary struct {
	Pending           int
	Rates             *ratesView
	LateP99           float64
	Dropped, Panicked uint64
}

func summarize(m measured) summary {
	st := &m.stats
	return summary{st.Pending, m.rates, st.Lateness.Quantile(0.99).Seconds(), st.Dropped, st.Panicked}
}

func (h *handler) view(s *timer.Scheduler) schedulerView {
	v := schedulerView{Name: valid(s.UniqueName())}
	v.Error = panicked(func() { v.schedulerNumbers = numbers(s, h.rates.of(s)) })
	return v
}

// panicked calls f and returns what it panics with, "" if it does not. A Scheduler's clock
// or executor may panic that is the program's own.
func panicked(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("panic: %v", v)
		}
	}()
	f()
	return ""
}

func numbers(s *timer.Scheduler, m measured) *schedulerNumbers {
	st := &m.stats
	return &schedulerNumbers{
		Counts: countsView{
			Pending: st.Pending, Started: st.Started, Fired: st.Fired, Stopped: st.Stopped,
			Rejected: st.Rejected, RejectedFull: st.RejectedFull, FellBack: st.FellBack,
			Dropped: st.Dropped, Queued: st.Queued, Panicked: st.Panicked,
			Wakeups: st.Wakeups, EmptyWakeups: st.EmptyWakeups, Cascaded: st.Cascaded,
		},
		Rates:    m.rates,
		Lateness: histogram(st.Lateness),
		Executor: executorView{
			Submitted: st.Executor.Submitted, Ran: st.Executor.Run, Rejected: st.Executor.Rejected,
			CallerRan: st.Executor.CallerRan, Queued: st.Executor.Queued, Running: st.Executor.Running,
			Workers: st.Executor.Workers, PeakWorkers: st.Executor.PeakWorkers,
		},
		pendingView: pending(s),
	}
}

func percent[N int | uint64](n, of N) float64 { return round(100 * float64(n) / float64(of)) }

// round keeps three digits behind the point.
func round(f float64) float64 { return math.Round(1000*f) / 1000 }

// rows are those of a histogram as it is drawn.
var rows = []struct {
	upTo  time.Duration
	label string
}{
	{10 * time.Microsecond, "10 µs"},
	{100 * time.Microsecond, "100 µs"},
	{time.Millisecond, "1 ms"},
	{10 * time.Millisecond, "10 ms"},
	{100 * time.Millisecond, "100 ms"},
	{time.Second, "1 s"},
	{math.MaxInt64, "longer"},
}

func histogram(h timer.Histogram) histogramView {
	v := histogramView{
		Count: h.Count(), Sum: h.Sum(), Max: h.Max().Seconds(),
		P50: h.Quantile(0.5).Seconds(), P99: h.Quantile(0.99).Seconds(),
		Buckets: []bucketView{},
	}
	for _, r := range rows {
		v.Rows = append(v.Rows, rowView{Label: r.label})
	}
	largest := uint64(1)
	for upTo, n := range h.Buckets() {
		v.Buckets = append(v.Buckets, bucketView{upTo.Seconds(), n})
		for i, r := range rows {
			if upTo <= r.upTo {
				v.Rows[i].Count += n
				largest = max(largest, v.Rows[i].Count)
				break
			}
		}
	}
	for i := range v.Rows {
		v.Rows[i].Percent = percent(v.Rows[i].Count, largest)
	}
	return v
}
