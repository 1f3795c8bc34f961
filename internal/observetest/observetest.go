// Package observetest is for tests of exporters. It provides Sources with known numbers,
// and the documented list of metrics.
package observetest

import (
	"encoding/csv"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// neverComplete is an operation that is never complete, so it waits until its timeout.
type neverComplete struct{ purgatory.Delayed[string] }

func (*neverComplete) TryComplete() bool { return false }
func (*neverComplete) OnComplete()       {}
func (*neverComplete) OnExpiration()     {}

// A lateClock is a clock whose alarms go off 3 ms late.
type lateClock struct{ *timertest.Clock }

func (c *lateClock) NewAlarm(f func()) clock.Alarm { return lateAlarm{c.Clock.NewAlarm(f)} }

type lateAlarm struct{ clock.Alarm }

func (a lateAlarm) Reset(d time.Duration) { a.Alarm.Reset(d + 3*time.Millisecond) }

// Sources returns five Sources with one object each: a Scheduler, Timers of package
// keyed, a Purgatory, a Monitor and Conns. Their numbers are the same in each run.
//
// The Scheduler "jobs" has started 8 timers: 3 fired, each 3 ms late, 1 was stopped, and
// 4 are pending. It was full, and refused 1 more timer.
func Sources(t testing.TB) []observe.Source {
	t.Helper()
	clk := &lateClock{timertest.NewClock(time.Unix(1e9, 0))}
	s := timer.New(timer.WithClock(clk), timer.WithMaxPending(4),
		timer.WithExecutor(executor.NewInline()), timer.WithPanicHandler(func(any, []byte) {}))
	t.Cleanup(func() { s.Close() })
	startTimer := func(d time.Duration, f func()) timer.Handle {
		h, err := s.Start(d, f)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	stoppedTimer := startTimer(time.Hour, func() {})
	if !stoppedTimer.Stop() {
		t.Fatal("the timer was not stopped")
	}
	for range 2 {
		startTimer(time.Second, func() {})
	}
	startTimer(time.Second, func() { panic("on purpose") })
	clk.Advance(2 * time.Second)

	keyedTimers := keyed.New(s, func(string, int) {})
	if err := keyedTimers.Set("a", 1, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	operations := purgatory.New[string](s)
	t.Cleanup(func() { operations.Close() })
	if _, err := operations.CompleteOrWatch(new(neverComplete), 45*time.Second, "k", "l"); err != nil {
		t.Fatal(err)
	}
	startTimer(30*time.Minute, func() {})
	startTimer(48*time.Hour, func() {})
	if _, err := s.Start(time.Second, func() {}); err == nil {
		t.Fatal("the Scheduler was not full")
	}

	peerMonitor := idle.New(func(string, time.Time) {}, idle.WithClock(clk))
	t.Cleanup(func() { peerMonitor.Close() })
	for _, peer := range []string{"x", "y"} {
		if _, err := peerMonitor.Watch(peer, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	clientConns := idle.NewConns(time.Minute, idle.WithClock(clk))
	t.Cleanup(func() { clientConns.Close() })

	return []observe.Source{
		observe.Scheduler("jobs", s),
		observe.Keyed("sessions", keyedTimers),
		observe.Purgatory("produce", operations),
		observe.Monitor("peers", peerMonitor),
		observe.Conns("clients", clientConns),
	}
}

// Foreign returns a Source with one object, "mailer". The object's type is defined
// outside package observe, like the types of package durable.
func Foreign() observe.Source {
	t := metric.NewTable[int]("mail.worker", "worker").Titled("Mail worker").Noted("Latest errors")
	handlerTimes := map[string]time.Duration{"bill": time.Second, "remind\xff": 2 * time.Millisecond}
	t.AddParts(metric.Gauge, "queue", "{mail}", "", "Mails that wait", func(n int, yield func(string, float64)) { yield("", float64(n)) })
	t.Add(metric.Gauge, "load", "1", "Share of the places that are taken", func(int) float64 { return 0.25 })
	t.Add(metric.Gauge, "queue.late", "s", "How long the oldest has waited", func(int) float64 { return 5 })
	t.AddParts(metric.Counter, "attempt.claimed", "{attempt}", "handler", "Attempts started", func(n int, yield func(string, float64)) {
		for h := range handlerTimes {
			yield(h, float64(n))
		}
	})
	t.AddHistograms("attempt.duration", "handler", "How long handlers took", func(_ int, yield func(string, timer.Histogram)) {
		for name, took := range handlerTimes {
			var h timer.Histogram
			h.Record(took)
			yield(name, h)
		}
	})
	return metric.One(t.Thing(), metric.Object{Name: "mailer", ID: "mailer", Read: func() any { return 3 }, Notes: func() []metric.Note {
		return []metric.Note{{When: time.Unix(1e9, 0), What: "remind order-17, attempt 3", Text: "no such address"}}
	}})
}

// A Row describes a metric as observe/metrics.csv lists it.
type Row struct {
	OTel, Prometheus, Kind, Unit, Labels, Help string
}

// Documented returns the rows of observe/metrics.csv. The rows of package durable are the
// last. root is the repository's folder.
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

// Core returns the rows except those of package durable, which Sources does not cover.
func Core(rows []Row) []Row {
	return slices.DeleteFunc(rows, func(r Row) bool { return strings.HasPrefix(r.OTel, "tickless.durable.") })
}
