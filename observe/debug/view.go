package debug

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
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
	Counts        countsView     `json:"counts"`
	Rates         *ratesView     `json:"rates,omitempty"` // nil: not known yet
	Forecast      []windowView   `json:"forecast"`
	Lateness      histogramView  `json:"lateness_seconds"`
	AlarmLateness histogramView  `json:"alarm_lateness_seconds"`
	Causes        []causeView    `json:"lateness_causes"`
	Executor      executorView   `json:"executor"`
	Callbacks     *callbacksView `json:"callbacks,omitempty"` // nil: not measured
	Levels        []levelView    `json:"levels"`
	Top           []topView      `json:"top"`
	Sampled       int            `json:"top_sampled"` // of how many timers top is made; 0: of all
	Late          []lateView     `json:"recent_late"`
	Slow          []slowView     `json:"recent_slow"`
	Panics        []panicView    `json:"recent_panics"`
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

type windowView struct {
	Until   *float64 `json:"until_seconds"` // nil: no end
	Timers  int      `json:"timers"`
	Label   string   `json:"-"`
	Percent float64  `json:"-"` // of the largest
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

type causeView struct {
	Cause   string  `json:"cause"`
	Seconds float64 `json:"seconds"`
	Percent float64 `json:"percent"`
	// Measured: it is known.
	Measured bool   `json:"measured"`
	Meaning  string `json:"-"`
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

type callbacksView struct {
	Waited  histogramView `json:"waited_seconds"`
	Ran     histogramView `json:"ran_seconds"`
	Running int           `json:"running"`
}

type levelView struct {
	Slot     float64 `json:"slot_seconds"`
	Span     float64 `json:"span_seconds"`
	Timers   int     `json:"timers"`
	Cascaded uint64  `json:"cascaded"`
	Queued   []int   `json:"queued"`
	// InQueue is how many slots have anything, and Cells their drawing.
	InQueue int        `json:"-"`
	Cells   []cellView `json:"-"`
}

// cellView draws all slots of one shade: a path in a box as wide as there are slots and
// one high.
type cellView struct {
	Shade int
	Path  string
}

type topView struct {
	Kind     timer.Kind `json:"kind"`
	Function string     `json:"function,omitempty"`
	// Origin is the function that started the timers, At its file and line.
	Origin  string  `json:"origin,omitempty"`
	At      string  `json:"origin_at,omitempty"`
	Timers  int     `json:"timers"` // estimated, if there is a sample only
	Percent float64 `json:"percent"`
}

type lateView struct {
	Due      time.Time  `json:"due"`
	Late     float64    `json:"late_seconds"`
	ByAlarm  float64    `json:"by_alarm_seconds"`
	ByPoller float64    `json:"by_poller_seconds"`
	Kind     timer.Kind `json:"kind"`
	Function string     `json:"function,omitempty"`
}

type slowView struct {
	Began    time.Time `json:"began"`
	Waited   float64   `json:"waited_seconds"`
	Took     float64   `json:"took_seconds"`
	Running  bool      `json:"running"`
	Function string    `json:"function"`
}

// alarmView is what the process's alarm has counted.
type alarmView struct {
	ByDescriptor uint64 `json:"by_descriptor"`
	ByTimer      uint64 `json:"by_timer"`
	ByBackup     uint64 `json:"by_backup"`
	NoDescriptor uint64 `json:"no_descriptor"`
}

type panicView struct {
	When  time.Time `json:"when"`
	Value string    `json:"value"`
	Stack string    `json:"stack"`
}

// windows are those of the forecast.
var windows = []struct {
	until time.Duration
	label string
}{
	{0, "overdue"},
	{100 * time.Millisecond, "in 100 ms"},
	{time.Second, "in 1 s"},
	{10 * time.Second, "in 10 s"},
	{time.Minute, "in 1 min"},
	{10 * time.Minute, "in 10 min"},
	{time.Hour, "in 1 h"},
	{24 * time.Hour, "in 1 day"},
}

const (
	sampleSize = 4096
	topRows    = 20
)

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
	v := &schedulerNumbers{
		Counts: countsView{
			Pending: st.Pending, Started: st.Started, Fired: st.Fired, Stopped: st.Stopped,
			Rejected: st.Rejected, RejectedFull: st.RejectedFull, FellBack: st.FellBack,
			Dropped: st.Dropped, Queued: st.Queued, Panicked: st.Panicked,
			Wakeups: st.Wakeups, EmptyWakeups: st.EmptyWakeups, Cascaded: st.Cascaded,
		},
		Rates:         m.rates,
		Forecast:      forecast(s),
		Lateness:      histogram(st.Lateness),
		AlarmLateness: histogram(st.AlarmLateness),
		Executor: executorView{
			Submitted: st.Executor.Submitted, Ran: st.Executor.Run, Rejected: st.Executor.Rejected,
			CallerRan: st.Executor.CallerRan, Queued: st.Executor.Queued, Running: st.Executor.Running,
			Workers: st.Executor.Workers, PeakWorkers: st.Executor.PeakWorkers,
		},
		Causes: causes(st),
		Levels: levels(s),
	}
	if c := st.Callbacks; c != nil {
		v.Callbacks = &callbacksView{histogram(c.Waited), histogram(c.Ran), c.Running}
	}
	v.Top, v.Sampled = top(s)
	v.recent(s.Recent())
	return v
}

func (v *schedulerNumbers) recent(r timer.Recent) {
	for _, l := range slices.Backward(r.Late) {
		v.Late = append(v.Late, lateView{
			l.Due, l.Late().Seconds(), l.ByAlarm.Seconds(), (l.Late() - l.ByAlarm).Seconds(), l.Kind, l.Function(),
		})
	}
	for _, c := range slices.Backward(r.Slow) {
		v.Slow = append(v.Slow, slowView{c.Began, c.Waited.Seconds(), c.Took.Seconds(), c.Running, c.Function()})
	}
	for _, p := range slices.Backward(r.Panics) {
		v.Panics = append(v.Panics, panicView(p))
	}
}

func forecast(s *timer.Scheduler) []windowView {
	var untils []time.Duration
	for _, w := range windows {
		untils = append(untils, w.until)
	}
	var views []windowView
	largest := 1
	for i, w := range s.Forecast(untils...) {
		v := windowView{Timers: w.Timers, Label: "later"}
		if i < len(windows) {
			until := w.Until.Seconds()
			v.Until, v.Label = &until, windows[i].label
		}
		views = append(views, v)
		largest = max(largest, w.Timers)
	}
	for i := range views {
		views[i].Percent = percent(views[i].Timers, largest)
	}
	return views
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

// causes says what all the lateness is made of.
func causes(st *timer.Stats) []causeView {
	views := []causeView{
		{
			Cause: "alarm", Seconds: st.LateByAlarm.Seconds(), Measured: true,
			Meaning: "The machine, or Go's scheduler, woke the Scheduler late: all procs were computing, or the system was.",
		},
		{
			Cause: "poller", Seconds: st.LateByPoller.Seconds(), Measured: true,
			Meaning: "The Scheduler had other timers to fire or to move first: very many fell due at one moment.",
		},
		{
			Cause:   "executor",
			Meaning: "Callbacks waited for a worker: others block, or compute, or there are too few workers. Slow callbacks are named below.",
		},
	}
	if c := st.Callbacks; c != nil {
		views[2].Seconds, views[2].Measured = c.Waited.Sum(), true
	}
	total := 0.0
	for _, v := range views {
		total += v.Seconds
	}
	for i := range views {
		if total > 0 {
			views[i].Percent = round(100 * views[i].Seconds / total)
		}
	}
	return views
}

// shades is how many shades a level's slots are drawn in.
const shades = 4

func levels(s *timer.Scheduler) []levelView {
	views := []levelView{}
	for _, l := range s.Levels() {
		v := levelView{
			Slot: l.Slot.Seconds(), Span: l.Slot.Seconds() * float64(len(l.Queued)),
			Timers: l.Timers, Cascaded: l.Cascaded, Queued: l.Queued,
		}
		most := max(1, slices.Max(l.Queued))
		var paths [shades][]byte
		for i, n := range l.Queued {
			if n == 0 {
				continue
			}
			v.InQueue++
			shade := (n*shades - 1) / most
			paths[shade] = append(paths[shade], 'M')
			paths[shade] = strconv.AppendInt(paths[shade], int64(i), 10)
			paths[shade] = append(paths[shade], " 0h1v1h-1z"...)
		}
		for shade, path := range paths {
			if len(path) > 0 {
				v.Cells = append(v.Cells, cellView{shade + 1, string(path)})
			}
		}
		views = append(views, v)
	}
	return views
}

// top returns what most of the pending timers are, from a sample of how many; 0 says
// that it has seen all.
func top(s *timer.Scheduler) (views []topView, sampled int) {
	sample := s.SamplePending(sampleSize)
	pending := s.Len()
	by := make(map[topView]int)
	for _, p := range sample {
		key := topView{Kind: p.Kind, Function: p.Function()}
		if f, ok := p.Origin(); ok {
			key.Origin, key.At = f.Function, f.File+":"+strconv.Itoa(f.Line)
		}
		by[key]++
	}
	for v, n := range by {
		v.Percent = percent(n, len(sample))
		v.Timers = n
		if len(sample) >= sampleSize-64 {
			v.Timers = int(math.Round(float64(n) / float64(len(sample)) * float64(pending)))
		}
		views = append(views, v)
	}
	slices.SortFunc(views, func(a, b topView) int {
		return cmp.Or(-cmp.Compare(a.Timers, b.Timers), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Function, b.Function), cmp.Compare(a.At, b.At))
	})
	if len(sample) < pending {
		sampled = len(sample)
	}
	return views[:min(len(views), topRows)], sampled
}
