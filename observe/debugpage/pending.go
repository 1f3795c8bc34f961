package debugpage

import (
	"cmp"
	"slices"
	"time"

	"github.com/tickless/tickless/timer"
)

// pendingView shows the pending timers of a Scheduler: when they are due, and which
// functions they run.
type pendingView struct {
	Due []dueView      `json:"due"`
	Top []functionView `json:"top"` // the functions with the most timers
	// Read is the number of timers that were read, at most maxTimersRead. More is true if
	// more timers are pending.
	Read int  `json:"read"`
	More bool `json:"more,omitempty"`
}

type dueView struct {
	Until   *float64 `json:"until_seconds"` // nil: no end
	Timers  int      `json:"timers"`
	Label   string   `json:"-"`
	Percent float64  `json:"-"` // Timers as a percentage of the largest in all rows
}

type functionView struct {
	Kind     timer.Kind `json:"kind"`
	Function string     `json:"function,omitempty"`
	Timers   int        `json:"timers"`
	Percent  float64    `json:"percent"` // of the timers that were read
}

// dueRows are the rows of the table of due times, except the last row, "later".
var dueRows = []struct {
	dueWithin time.Duration
	label     string
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
	maxTimersRead   = 100_000
	maxFunctionRows = 20
)

// newPendingView reads the pending timers of a Scheduler.
func newPendingView(s *timer.Scheduler) *pendingView {
	v := &pendingView{Top: []functionView{}}
	timersPerRow := make([]int, len(dueRows)+1)
	timersPerFunction := make(map[functionView]int)
	now := s.Now()
	for p := range s.Pending() {
		if v.Read == maxTimersRead {
			v.More = true
			break
		}
		v.Read++
		in, i := p.Due.Sub(now), 0
		for i < len(dueRows) && in > dueRows[i].dueWithin {
			i++
		}
		timersPerRow[i]++
		timersPerFunction[functionView{Kind: p.Kind, Function: p.Function()}]++
	}
	maxPerRow := max(1, slices.Max(timersPerRow))
	for i, n := range timersPerRow {
		w := dueView{Timers: n, Label: "later", Percent: percentOf(n, maxPerRow)}
		if i < len(dueRows) {
			until := dueRows[i].dueWithin.Seconds()
			w.Until, w.Label = &until, dueRows[i].label
		}
		v.Due = append(v.Due, w)
	}
	for t, n := range timersPerFunction {
		t.Timers, t.Percent = n, percentOf(n, v.Read)
		v.Top = append(v.Top, t)
	}
	slices.SortFunc(v.Top, func(a, b functionView) int {
		return cmp.Or(-cmp.Compare(a.Timers, b.Timers), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Function, b.Function))
	})
	v.Top = v.Top[:min(len(v.Top), maxFunctionRows)]
	return v
}
