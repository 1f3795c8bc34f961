// Package observetest has what the tests of the exporters share: things that have
// numbers, and the documentation to compare with.
package observetest

import (
	"encoding/csv"
	"os"
	"testing"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// operation waits for its key.
type operation struct{ purgatory.Delayed[string] }

func (*operation) TryComplete() bool { return false }
func (*operation) OnComplete()       {}
func (*operation) OnExpiration()     {}

// A lazyClock rings each alarm 3 ms late.
type lazyClock struct{ *timertest.Clock }

func (c *lazyClock) NewAlarm(f func()) clock.Alarm { return lazyAlarm{c.Clock.NewAlarm(f)} }

type lazyAlarm struct{ clock.Alarm }

func (a lazyAlarm) Reset(d time.Duration) { a.Alarm.Reset(d + 3*time.Millisecond) }

// Sources returns a thing of each kind, with numbers that are not all zero. The time is
// virtual, so that they are the same each time.
//
// The Scheduler is called "jobs". It has started 8 timers, of which 3 fired, each 3 ms
// late, 1 was stopped, and 4 are pending. It has refused 1 timer because it was full.
// The others are "sessions", "produce", "peers" and "clients".
func Sources(t testing.TB) []observe.Source {
	t.Helper()
	clk := &lazyClock{timertest.NewClock(time.Unix(1e9, 0))}
	s := timer.New(timer.WithClock(clk), timer.WithMaxPending(3),
		timer.WithExecutor(executor.NewInline()), timer.WithPanicHandler(func(any, []byte) {}))
	t.Cleanup(func() { s.Close() })
	start := func(d time.Duration, f func()) timer.Handle {
		h, err := s.Start(d, f)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	stopped := start(time.Hour, func() {})
	if !stopped.Stop() {
		t.Fatal("the timer was not stopped")
	}
	for range 2 {
		start(time.Second, func() {})
	}
	start(time.Second, func() { panic("on purpose") })
	clk.Advance(2 * time.Second)

	sessions := timer.NewKeyed(s, func(string, int) {})
	if err := sessions.Set("a", 1, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	produce := purgatory.New[string](s)
	t.Cleanup(func() { produce.Close() })
	if _, err := produce.TryCompleteElseWatch(new(operation), 45*time.Second, "k", "l"); err != nil {
		t.Fatal(err)
	}
	start(30*time.Minute, func() {})
	start(48*time.Hour, func() {})
	if _, err := s.Start(time.Second, func() {}); err == nil {
		t.Fatal("the Scheduler was not full")
	}

	peers := idle.New(func(string, time.Time) {}, idle.WithClock(clk))
	t.Cleanup(func() { peers.Close() })
	for _, peer := range []string{"x", "y"} {
		if _, err := peers.Watch(peer, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	clients := idle.NewConns(time.Minute, idle.WithClock(clk))
	t.Cleanup(func() { clients.Close() })

	return []observe.Source{
		observe.Scheduler("jobs", s),
		observe.Keyed("sessions", sessions),
		observe.Purgatory("produce", produce),
		observe.Monitor("peers", peers),
		observe.Conns("clients", clients),
		durableClient(),
		durableWorker(),
	}
}

// durableClient is what a Client of package durable is read as, which the core does not
// import. It is "orders": 5 tasks, of which 2 are due.
func durableClient() observe.Source {
	s := &metric.ClientSample{
		Queue: &metric.Queue{
			Pending: 1, Due: 2, Running: 1, Dead: 1, PausedShards: 1, Late: 5 * time.Second, Age: time.Second,
			Claimed: 20, Done: 11, Retried: 3, Died: 1, Crashed: 2, Released: 2, Refused: 1, Cancelled: 4,
		},
		Commands: []metric.Command{
			{Name: "schedule", Errors: 1, Took: histogram(time.Millisecond, 2*time.Millisecond), Outcomes: []metric.Part{{Name: "created", N: 5}, {Name: "replaced", N: 2}}},
			{Name: "reschedule", Took: histogram(time.Millisecond), Outcomes: []metric.Part{{Name: "moved", N: 1}}},
			{Name: "cancel", Took: histogram(time.Millisecond), Outcomes: []metric.Part{{Name: "removed", N: 1}}},
		},
	}
	return metric.One(metric.Clients, metric.Object{Name: "orders", ID: s, Read: func() any { return s }})
}

// durableWorker is the same for a Worker, "mailer", with two handlers.
func durableWorker() observe.Source {
	s := &metric.WorkerSample{
		Places: 256, Taken: 2, Unknown: 1, Claims: 9, EmptyClaims: 4, Errors: 1, Wakeups: 3,
		Handlers: []metric.Handler{
			{Name: "bill", Running: 1, Claimed: 3, Done: 2, Lateness: histogram(time.Millisecond), Ran: histogram(time.Second)},
			{
				Name: "remind", Running: 1, Claimed: 9, Done: 3, Retried: 2, Died: 1, Dropped: 1, Overtaken: 1, Released: 1, Lost: 1,
				Lateness: histogram(time.Millisecond, time.Second), Ran: histogram(time.Millisecond),
			},
		},
	}
	return metric.One(metric.Workers, metric.Object{Name: "mailer", ID: s, Read: func() any { return s }, Notes: func() []metric.Note {
		return []metric.Note{{When: time.Unix(1e9, 0), What: "remind order-17, attempt 3", Text: "no such address"}}
	}})
}

func histogram(durations ...time.Duration) (h timer.Histogram) {
	for _, d := range durations {
		h.Record(d)
	}
	return h
}

// A Row is a metric as observe/metrics.csv lists it.
type Row struct {
	OTel, Prometheus, Kind, Unit, Labels, Help string
}

// Documented returns the rows of observe/metrics.csv. root is the repository's folder.
func Documented(t testing.TB, root string) []Row {
	t.Helper()
	f, err := os.Open(root + "/observe/metrics.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil || len(records) < 2 {
		t.Fatalf("observe/metrics.csv: %d lines, %v", len(records), err)
	}
	var rows []Row
	for _, r := range records[1:] {
		rows = append(rows, Row{r[0], r[1], r[2], r[3], r[4], r[5]})
	}
	return rows
}
