package timer_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// The model is the simplest scheduler there is: a list of timers with their deadlines. A
// run does the same random operations on the model and on a Scheduler with a virtual
// clock. It compares their results, callbacks and counts.

// modelCase is a configuration of a model run.
type modelCase struct {
	tick   time.Duration
	size   int
	shards int
	start  time.Duration // the clock's time when the run begins
	limit  int           // bounds the pending timers of Start; 0: no limit
	// tickers is true if the run has tickers too. Then Advance takes small steps.
	tickers bool
	slack   bool // timers have slack
	seldom  bool // pending timers are counted rarely, because counting removes stopped Timers from the wheel
}

func (c modelCase) String() string {
	return fmt.Sprintf("tick=%v/size=%d/shards=%d/start=%v/limit=%d/tickers=%v/slack=%v/seldom=%v", c.tick, c.size, c.shards, c.start, c.limit, c.tickers, c.slack, c.seldom)
}

func modelCases() []modelCase {
	var cases []modelCase
	for _, tick := range []time.Duration{1, 7, time.Millisecond, 100 * time.Millisecond} {
		for _, size := range []int{2, 8, 256} {
			for _, shards := range []int{1, 3} {
				for _, start := range []time.Duration{0, 12345678912345, math.MaxInt64 - 1<<40} {
					for kind := range 4 {
						c := modelCase{tick: tick, size: size, shards: shards, start: start, tickers: kind%2 == 1, slack: len(cases)%3 == 0, seldom: len(cases)%5 < 3}
						if kind >= 2 {
							c.limit = 4 * shards
						}
						cases = append(cases, c)
					}
				}
			}
		}
	}
	// With n workers, each takes every nth case. Shuffling gives it cases of all kinds.
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	return cases
}

// modelTimer is a timer of the model: one of h, t and k is set.
type modelTimer struct {
	h timer.Handle
	t *timer.Timer
	k *timer.Ticker
	c <-chan time.Time // the channel of t or k, or nil

	armed    bool  // pending, or its callback has not run yet
	deadline int64 // exact, in nanoseconds since the epoch
	due      int64 // the moment at which the deadline's tick comes
	atOnce   bool  // was due when last started: has fired, but perhaps not run
	fell     bool  // fell back, on a closed Scheduler: due at its deadline, not at a tick
	period   int64 // of a ticker
	unread   int64 // the moment of the value in c, or none
	reset    bool  // a Timer that was reset before Close
	dead     bool  // reset is true, and the Timer was stopped afterwards
}

const none = -1

// coverage counts events. In the end, each event must have occurred in some run.
type coverage struct {
	Fired, Stopped, Stale, ResetLater, ResetEarlier, ResetFired int
	Saturated, AtOnce, Idle, Nested, NestedClose, Closed        int
	Withdrawn, Received, Ticks, TicksDropped, Rejected          int
	AfterClose, HandedBack                                      int
	Waiting, FellBack, FellBackFired, FellBackStopped           int
	ResetStopped, RevivedLater, RevivedEarlier, RevivedAtOnce   int
	Cascaded                                                    uint64
}

type modelRun struct {
	t      testing.TB
	c      modelCase
	rng    choices
	clk    *timertest.Clock
	epoch  time.Time
	s      *timer.Scheduler
	timers []*modelTimer
	steps  int

	// nested is true while a callback calls methods. Then it is unknown which due timers
	// have left the wheel.
	nested bool
	closed bool
	failed bool
	// If identify is true, callbacks only store their timer in the field identified.
	identify   bool
	identified *modelTimer

	pending, queued int // armed timers, and callbacks of timers that were due at once
	n               struct{ started, fired, stopped, rejected, handedBack, fellBack uint64 }
	cover           *coverage
}

// choices provides a run's decisions: a random generator or a fuzzer's bytes.
type choices interface {
	IntN(n int) int
	Int64N(n int64) int64
}

func newModelRun(t testing.TB, c modelCase, rng choices, cover *coverage) *modelRun {
	r := &modelRun{t: t, c: c, rng: rng, cover: cover}
	r.epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	r.clk = timertest.NewClock(r.epoch)
	opts := []timer.Option{timer.WithClock(r.clk), timer.WithExecutor(executor.NewInline()), timer.WithTick(c.tick), timer.WithWheelSize(c.size), timer.WithShards(c.shards)}
	if c.limit > 0 {
		opts = append(opts, timer.WithMaxPending(c.limit))
	}
	if c.slack {
		opts = append(opts, timer.WithSlack(modelShare, modelLeast, modelMost))
	}
	r.s = timer.New(opts...)
	r.clk.Advance(c.start)
	if c.seldom {
		r.startManyTimers()
	}
	return r
}

// failf ends the test. Later callbacks do nothing.
func (r *modelRun) failf(format string, args ...any) {
	r.t.Helper()
	r.failed = true
	r.t.Fatalf("%v: step %d, now %d: %s", r.c, r.steps, r.now(), fmt.Sprintf(format, args...))
}

func (r *modelRun) now() int64 { return int64(r.clk.Now().Sub(r.epoch)) }

// Arguments of WithSlack, in cases with slack.
const (
	modelShare = 0.3
	modelLeast = 3 * time.Nanosecond
	modelMost  = time.Minute
)

// slackFor returns the slack that the Scheduler gives a timer with delay d.
func (r *modelRun) slackFor(d time.Duration) time.Duration {
	if !r.c.slack {
		return 0
	}
	return min(max(time.Duration(modelShare*float64(d)), modelLeast), modelMost)
}

// dueAt returns when a timer with the given deadline falls due. Without slack it is the
// deadline's tick. With slack it is the roundest tick within the slack: a multiple of the
// largest possible 2^i or 3 × 2^i.
func (r *modelRun) dueAt(deadline int64, slack time.Duration) int64 {
	tick := int64(r.c.tick)
	k := deadline / tick
	if deadline%tick != 0 {
		k++
	}
	if last := after(deadline, max(slack, 0)) / tick; last > k {
		p := int64(1) << 20
		for least := int64(3); least <= 3<<9; least *= 2 {
			if length := min(int64(slack), math.MaxInt64-deadline) / tick; length >= least && length < least/3*4 {
				p = 3 << 9
			}
		}
		for ; p > 0; p >>= 1 {
			if t := (k-1)/p*p + p; t > 0 && t <= last { // the first multiple
				k = t
				break
			}
		}
	}
	if k > math.MaxInt64/tick {
		return math.MaxInt64
	}
	return k * tick
}

// delay chooses a delay. On a closed Scheduler the delay is positive, because a timer
// that has fallen back never fires at once.
func (r *modelRun) delay() time.Duration {
	if r.closed {
		return max(r.anyDelay(), 1)
	}
	return r.anyDelay()
}

func (r *modelRun) anyDelay() time.Duration {
	switch r.rng.IntN(12) {
	case 0:
		r.cover.AtOnce++
		return -time.Duration(r.rng.IntN(3))
	case 1:
		r.cover.Saturated++
		return math.MaxInt64 - time.Duration(r.rng.IntN(3))
	case 2, 3:
		// Any magnitude.
		return time.Duration(r.rng.Int64N(1 << (1 + r.rng.IntN(62))))
	case 4:
		// Close to a power of the wheel size, where a level ends.
		span := int64(r.c.tick)
		for range r.rng.IntN(6) {
			if span > math.MaxInt64/int64(r.c.size)/2 {
				break
			}
			span *= int64(r.c.size)
		}
		return time.Duration(max(span+int64(r.rng.IntN(5)-2)*max(int64(r.c.tick)/2, 1), 1))
	default:
		return time.Duration(1 + r.rng.Int64N(int64(r.c.tick)*int64(r.c.size)*4))
	}
}

// set sets the deadline of a timer that was started or reset.
func (r *modelRun) set(m *modelTimer, now int64, d, slack time.Duration) {
	m.deadline, m.atOnce, m.fell = after(now, d), d <= 0, r.closed
	m.due = r.dueAt(m.deadline, slack)
	if !m.atOnce && m.due > r.dueAt(m.deadline, 0) {
		r.cover.Waiting++
	}
	m.armed = true
	switch {
	case m.fell:
		m.due = m.deadline
	case !m.atOnce:
		r.pending++
	case m.c != nil:
		// The value was sent at once.
		m.armed, m.unread = false, now
		r.n.fired++
	default:
		m.due = now
		r.queued++
	}
}

// unset marks a timer as no longer armed.
func (r *modelRun) unset(m *modelTimer) {
	m.armed = false
	switch {
	case m.fell:
	case m.atOnce:
		r.queued--
	default:
		r.pending--
	}
}

// settle updates a timer with a channel for all values that were sent until now. While a
// callback runs, settle leaves out values that are due now, which may not have been sent.
func (r *modelRun) settle(m *modelTimer, now int64) {
	if m.c == nil {
		return
	}
	for m.armed && m.due <= now && !(r.nested && m.due == now) {
		r.fireChan(m)
	}
}

func (r *modelRun) fireChan(m *modelTimer) {
	r.fired(m)
	if m.unread == none {
		m.unread = m.due
	} else {
		r.cover.TicksDropped++
	}
	if m.k == nil {
		r.unset(m)
		return
	}
	r.cover.Ticks++
	m.deadline += (m.due - m.deadline) / m.period * m.period
	m.deadline = after(m.deadline, time.Duration(m.period))
	if m.fell {
		m.due = m.deadline
		return
	}
	r.n.started++
	m.due = r.dueAt(m.deadline, r.slackFor(time.Duration(m.deadline-m.due)))
}

// fired counts a timer as fired.
func (r *modelRun) fired(m *modelTimer) {
	if m.fell {
		r.cover.FellBackFired++
		return
	}
	r.n.fired++
	r.cover.Fired++
}

// reached reports whether a timer is due at or before now. While callbacks run, it may
// still be in the wheel.
func (r *modelRun) reached(m *modelTimer, now int64) bool {
	return m.armed && (m.atOnce || m.due <= now)
}

// callback returns a timer's callback, which checks its time against the model.
func (r *modelRun) callback(m *modelTimer) func() {
	return func() {
		if r.failed {
			return
		}
		if r.identify {
			r.identified = m
			return
		}
		now := r.now()
		if !m.armed {
			r.failf("a timer that is not pending ran: deadline %d", m.deadline)
		}
		if m.due != now {
			r.failf("a timer ran at the wrong time: due at %d, deadline %d", m.due, m.deadline)
		}
		r.unset(m)
		r.fired(m)
		if r.rng.IntN(8) == 0 {
			// A callback may call all methods.
			r.cover.Nested++
			r.nested = true
			if r.rng.IntN(64) == 0 && !r.c.tickers {
				r.cover.NestedClose++
				r.close()
			} else {
				r.change()
			}
			r.nested = false
		}
	}
}

func after(now int64, d time.Duration) int64 {
	if int64(d) > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + max(int64(d), 0)
}

func (r *modelRun) pick() *modelTimer {
	if len(r.timers) == 0 {
		return nil
	}
	return r.timers[r.rng.IntN(len(r.timers))]
}

// change starts, stops or resets a timer, or receives from one.
func (r *modelRun) change() {
	now := r.now()
	k := r.rng.IntN(11)
	if k < 5 {
		r.start(now)
		return
	}
	m := r.pick()
	if m == nil {
		return
	}
	r.settle(m, now)
	reached := r.reached(m, now)
	switch {
	case reached && (m.c != nil || k >= 7):
		// The result depends on whether the timer has left the wheel, which the model
		// does not know.
	case k < 7:
		r.stop(m, reached)
	case k < 10:
		r.reset(m, now)
	case m.c != nil:
		r.receive(m)
	}
}

func (r *modelRun) start(now int64) {
	m := &modelTimer{unread: none}
	d := r.delay()
	slack := r.slackFor(d)
	var err error
	switch k := r.rng.IntN(8); {
	case k < 2:
		slack = r.delay()
		m.h, err = r.s.StartWithin(d, slack, r.callback(m))
	case k < 4:
		m.h, err = r.s.Start(d, r.callback(m))
	case k < 6:
		m.t = r.s.AfterFunc(d, r.callback(m))
	case k < 7 || !r.c.tickers:
		m.t = r.s.NewTimer(d)
		m.c = m.t.C
	default:
		d = r.tickerPeriod()
		slack = r.slackFor(d)
		m.k = r.s.NewTicker(d)
		m.c, m.period = m.k.C, int64(d)
	}
	r.timers = append(r.timers, m)
	if r.accepted(m, d, now, err) {
		r.n.started++
		r.set(m, now, d, slack)
	}
}

// startManyTimers starts many Timers and resets each twice. Entries then hold the
// *Timers, and some are stopped without their shard's lock.
func (r *modelRun) startManyTimers() {
	now, d := r.now(), 1<<30+r.delay()%(1<<30)
	for range 48 * r.c.shards {
		m := &modelTimer{unread: none}
		m.t = r.s.AfterFunc(d, r.callback(m))
		r.timers = append(r.timers, m)
		r.n.started++
		r.set(m, now, d, r.slackFor(d))
		for range 2 {
			if !m.t.Reset(d) {
				r.failf("not active")
			}
		}
	}
}

func (r *modelRun) tickerPeriod() time.Duration {
	return time.Duration(1 + r.rng.Int64N(int64(r.c.tick)*int64(r.c.size)*4))
}

// accepted reports whether a timer was started, and fails the test if the error of Start
// is wrong.
func (r *modelRun) accepted(m *modelTimer, d time.Duration, now int64, err error) bool {
	isHandle := m.t == nil && m.k == nil
	if r.closed {
		if isHandle && !errors.Is(err, timer.ErrClosed) {
			r.failf("Start on a closed Scheduler: %v", err)
		}
		r.cover.AfterClose++
		if isHandle {
			r.n.rejected++
			return false
		}
		r.n.fellBack++
		r.cover.FellBack++
		return true
	}
	full := false
	if r.c.limit > 0 && d > 0 && isHandle {
		surely := 0 // pending, not counting timers that are due now
		for _, m := range r.timers {
			if m.limited() && m.due > now {
				surely++
			}
		}
		full = surely >= r.c.limit
		if r.nested && !full {
			// Timers that are due now may still count against the limit.
			full = errors.Is(err, timer.ErrTooManyPending)
		}
		if full && surely+r.undecided(now) < r.c.limit {
			r.failf("Start refused a timer with %d pending, limit %d", surely, r.c.limit)
		}
	}
	switch {
	case full:
		if !errors.Is(err, timer.ErrTooManyPending) {
			r.failf("Start with too many pending: %v", err)
		}
		r.n.rejected++
		r.cover.Rejected++
		return false
	case err != nil:
		r.failf("Start: %v", err)
	}
	return true
}

// limited reports whether the timer counts against the limit.
func (m *modelTimer) limited() bool { return m.t == nil && m.k == nil && m.armed && !m.atOnce }

// undecided returns how many due timers may still count against the limit.
func (r *modelRun) undecided(now int64) int {
	n := 0
	for _, m := range r.timers {
		if m.limited() && m.due <= now {
			n++
		}
	}
	return n
}

func (r *modelRun) stop(m *modelTimer, reached bool) {
	if m.k != nil {
		m.k.Stop()
		m.unread = none
		if m.armed {
			r.stopped(m)
		}
		return
	}
	stop := m.h.Stop
	if m.t != nil {
		stop = m.t.Stop
	}
	got := stop()
	switch {
	case m.armed && m.atOnce:
		if got {
			r.failf("Stop of a timer that was due at once")
		}
	case reached && !got:
		// The timer has left the wheel, so its callback will run.
	case m.unread != none:
		if !got {
			r.failf("Stop did not remove the sent value from the channel")
		}
		m.unread = none
		r.cover.Withdrawn++
	case got != m.armed:
		r.failf("Stop reported %v, deadline %d", got, m.deadline)
	case got:
		r.stopped(m)
		if m.reset {
			m.dead = true
			r.cover.ResetStopped++
		}
	default:
		r.cover.Stale++
	}
}

func (r *modelRun) stopped(m *modelTimer) {
	r.unset(m)
	if m.fell {
		r.cover.FellBackStopped++
		return
	}
	r.n.stopped++
	r.cover.Stopped++
}

// reset resets a timer that is not due now.
func (r *modelRun) reset(m *modelTimer, now int64) {
	d := r.delay()
	slack := r.slackFor(d)
	was := m.armed
	switch {
	case m.k != nil:
		d = r.tickerPeriod()
		slack = r.slackFor(d)
		m.k.Reset(d)
		m.period, m.unread = int64(d), none
	case m.t != nil:
		active := was || m.unread != none
		m.unread = none
		if got := m.t.Reset(d); got != active {
			r.failf("Timer.Reset reported %v, deadline %d", got, m.deadline)
		}
	default:
		reset := m.h.Move
		if r.rng.IntN(2) == 0 {
			slack = r.delay()
			reset = func(d time.Duration) bool { return m.h.MoveWithin(d, slack) }
		}
		if got := reset(d); got != was {
			r.failf("Handle.Move reported %v, deadline %d", got, m.deadline)
		}
		if !was {
			r.cover.Stale++
			return
		}
	}
	old := m.deadline
	if was {
		r.unset(m)
	}
	if !was || m.fell || r.closed {
		r.accepted(m, d, now, nil)
		r.n.started++
		r.cover.ResetFired++
	}
	r.set(m, now, d, slack)
	switch {
	case !m.dead:
	case d <= 0:
		r.cover.RevivedAtOnce++
	case m.deadline >= old:
		r.cover.RevivedLater++
	default:
		r.cover.RevivedEarlier++
	}
	m.reset, m.dead = m.t != nil && d > 0, false
	if m.deadline >= old {
		r.cover.ResetLater++
	} else {
		r.cover.ResetEarlier++
	}
}

func (r *modelRun) receive(m *modelTimer) {
	got := int64(none)
	select {
	case at := <-m.c:
		got = int64(at.Sub(r.epoch))
		r.cover.Received++
	default:
	}
	if got != m.unread {
		r.failf("received %d, not %d", got, m.unread)
	}
	m.unread = none
}

// step does one operation and compares.
func (r *modelRun) step() {
	r.steps++
	switch {
	case r.rng.IntN(400) == 0:
		r.close()
	case r.rng.IntN(3) > 0:
		r.change()
	default:
		r.advance()
	}
	r.check()
}

func (r *modelRun) advance() {
	d := int64(r.c.tick) * int64(r.rng.IntN(r.c.size*2+1))
	switch r.rng.IntN(8) {
	case 0:
		d = 0
	case 1:
		r.cover.Idle++
		if r.c.tickers {
			d = r.rng.Int64N(64 * int64(r.c.tick) * int64(r.c.size))
		} else {
			d = r.rng.Int64N(1 << (1 + r.rng.IntN(50)))
		}
	case 2:
		d = r.rng.Int64N(int64(r.c.tick) + 1)
	}
	d = min(d, math.MaxInt64-1-r.now()) // the last moment is never reached
	r.clk.Advance(time.Duration(d))
	// Each due timer must have run.
	now := r.now()
	for _, m := range r.timers {
		r.settle(m, now)
		if r.reached(m, now) {
			r.failf("a timer due at %d has not run", m.due)
		}
	}
	r.timers = slices.DeleteFunc(r.timers, func(m *modelTimer) bool {
		if m.armed || r.rng.IntN(4) == 0 {
			return false
		}
		if m.c != nil {
			r.receive(m)
		}
		return true
	})
}

// check compares the counts of the Scheduler and the model. Most counts are compared only
// after some steps: they only grow, so a wrong count stays wrong.
func (r *modelRun) check() {
	if !r.c.seldom {
		if got := r.s.Len(); got != r.pending {
			r.failf("Len is %d, not %d", got, r.pending)
		}
	}
	if r.steps%16 == 0 && (!r.c.seldom || r.steps%256 == 0) {
		r.checkStats()
	}
}

func (r *modelRun) checkStats() {
	st := r.s.Stats()
	switch {
	case st.Started != r.n.started, st.Stopped != r.n.stopped, st.Fired != r.n.fired+uint64(r.queued),
		st.Rejected != r.n.rejected, st.HandedBack != r.n.handedBack, st.Pending != r.pending, st.FellBack != r.n.fellBack,
		st.Queued != r.queued, st.Refused != 0:
		r.failf("%+v, pending %d, queued %d, but %+v", r.n, r.pending, r.queued, st)
	case st.Started != st.Fired+st.Stopped+st.HandedBack+st.FellBack+uint64(st.Pending):
		r.failf("Stats does not account for each timer: %+v", st)
	}
	if st.Lateness.Count() != st.Fired || st.Lateness.Max() >= r.c.tick {
		r.failf("Stats counts the lateness of %d timers, up to %v", st.Lateness.Count(), st.Lateness.Max())
	}
}

// close closes the Scheduler and compares the leftover timers.
func (r *modelRun) close() {
	ps := closeAll(r.s)
	if r.closed && ps != nil {
		r.failf("a second Close handed back %d", len(ps))
	}
	r.closed = true
	r.cover.Closed++
	now := r.now()
	var got, want []int64 // deadlines of the timers with a channel
	last := int64(math.MinInt64)
	for _, p := range ps {
		deadline := int64(p.Deadline.Sub(r.epoch))
		if deadline < last {
			r.failf("Close: %d comes after %d", deadline, last)
		}
		last = deadline
		if p.Func == nil {
			got = append(got, deadline)
			continue
		}
		r.identify = true
		p.Func()
		r.identify = false
		m := r.identified
		if !m.armed || m.atOnce || m.deadline != deadline {
			r.failf("Close handed back a timer with deadline %d, but the model has %+v", deadline, m)
		}
		r.handedBack(m)
	}
	for _, m := range r.timers {
		r.settle(m, now)
		switch {
		case !m.armed || m.fell:
		case r.reached(m, now):
			// A channel shows whether the timer has fired. If it has not, Close has
			// returned it.
			if len(m.c) == 1 {
				r.fireChan(m)
			} else if m.c != nil {
				want = append(want, m.deadline)
				r.handedBack(m)
			}
		case m.c == nil:
			r.failf("Close has not handed back a timer with deadline %d", m.deadline)
		default:
			want = append(want, m.deadline)
			r.handedBack(m)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.failf("Close handed back deadlines %d, not %d", got, want)
	}
}

func (r *modelRun) handedBack(m *modelTimer) {
	r.unset(m)
	r.n.handedBack++
	r.cover.HandedBack++
}

func (r *modelRun) finish() {
	r.clk.Advance(0)
	for _, m := range r.timers {
		r.settle(m, r.now())
		if m.c != nil {
			r.receive(m)
		}
	}
	r.check()
	r.close()
	r.check()
	r.checkStats()
	if r.pending != 0 || r.queued != 0 {
		r.failf("after Close: %d pending, %d queued", r.pending, r.queued)
	}
	r.cover.Cascaded += r.s.Stats().Cascaded
	if slices.ContainsFunc(r.timers, func(m *modelTimer) bool { return m.armed && m.fell }) {
		return
	}
	if next, set := r.clk.Next(); set {
		r.failf("an alarm is left after Close, for %v", next)
	}
}

// modelOps returns the number of operations of all runs together: TICKLESS_MODEL, or
// enough for a few seconds.
func modelOps(t *testing.T) int {
	if v := os.Getenv("TICKLESS_MODEL"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(t, err, "TICKLESS_MODEL")
		return n
	}
	if timer.RaceEnabled {
		return 100_000
	}
	return 400_000
}

func modelSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	if v := os.Getenv("TICKLESS_SEED"); v != "" {
		var err error
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "TICKLESS_SEED")
	}
	t.Logf("TICKLESS_SEED=%d", seed)
	return seed
}

func TestScheduler_Model(t *testing.T) {
	const stepsPerRun = 400
	seed, cases := modelSeed(t), modelCases()
	require.Len(t, cases, 4*3*2*3*4, "every combination of tick, size, shards, start and kind")
	runs := max(modelOps(t)/stepsPerRun, len(cases))
	workers := runtime.GOMAXPROCS(0)
	covers := make([]coverage, workers)
	run := func(t *testing.T, i int, cover *coverage) {
		r := newModelRun(t, cases[i%len(cases)], rand.New(rand.NewPCG(seed, uint64(i))), cover)
		for range stepsPerRun {
			r.step()
		}
		r.finish()
	}
	begin := time.Now()
	t.Run("workers", func(t *testing.T) {
		for w := range workers {
			t.Run(strconv.Itoa(w), func(t *testing.T) {
				t.Parallel()
				for i := w; i < runs; i += workers {
					run(t, i, &covers[w])
				}
			})
		}
	})
	for _, c := range covers[1:] {
		covers[0].add(c)
	}
	// Some events are rare. If one has not occurred yet, do more runs.
	for most := runs + max(runs, 1000); !t.Failed() && covers[0].lacks() && runs < most; runs++ {
		run(t, runs, &covers[0])
	}
	took := time.Since(begin)
	t.Logf("%d operations in %v, in %d runs: %+v", runs*stepsPerRun, took, runs, covers[0])
	for name, n := range covers[0].all() {
		require.NotZero(t, n, name)
	}
}

func (c *coverage) add(o coverage) {
	a, b := reflect.ValueOf(c).Elem(), reflect.ValueOf(o)
	for i := range a.NumField() {
		if f := a.Field(i); f.CanInt() {
			f.SetInt(f.Int() + b.Field(i).Int())
		} else {
			f.SetUint(f.Uint() + b.Field(i).Uint())
		}
	}
}

// lacks reports whether some event has not occurred.
func (c coverage) lacks() bool {
	for _, n := range c.all() {
		if reflect.ValueOf(n).IsZero() {
			return true
		}
	}
	return false
}

// all returns the counts by event name.
func (c coverage) all() map[string]any {
	all := make(map[string]any)
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		all[v.Type().Field(i).Name] = v.Field(i).Interface()
	}
	return all
}
