package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDemo_CalledWrongly(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-bogus"}, "-bogus"},
		{[]string{"bogus"}, "no arguments"},
		{[]string{"-count", "0"}, "count"},
		{[]string{"-count", "-5"}, "count"},
		{[]string{"-count", "many"}, "whole number"},
		{[]string{"-count", "1.5"}, "whole number"},
		{[]string{"-count", "101M"}, "10000000"},
		{[]string{"-count"}, "argument"},
		{[]string{"-duration", "0s"}, "duration"},
		{[]string{"-duration", "-1s"}, "duration"},
		{[]string{"-duration", "1000h"}, "duration"},
		{[]string{"-duration", "soon"}, "soon"},
	} {
		var stdout, stderr strings.Builder
		code := execute(tt.args, &stdout, &stderr)
		if code != exitUsage || stdout.String() != "" || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%q: exit code %d, %q, %q", tt.args, code, stdout.String(), stderr.String())
		}
	}
	var stdout, stderr strings.Builder
	if code := execute([]string{"-help"}, &stdout, &stderr); code != 0 || !strings.Contains(stderr.String(), "-duration") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

func TestDemo_Table(t *testing.T) {
	var stdout, stderr strings.Builder
	if code := execute([]string{"-count", "10k", "-duration", "200ms"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	for _, want := range []string{"tickless", "time.AfterFunc", "ratio", "stopped in time", "fired", "lost", "early",
		"late, p50", "late, p99", "late, max", "allocated", "10,000", "90% answered"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the table does not show %q:\n%s", want, stdout.String())
		}
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "No timer of Tickless was lost or early;") {
		t.Errorf("the last line is %q", last)
	}
	if !strings.Contains(stderr.String(), "time.AfterFunc: 10,000 requests over 200ms\n") {
		t.Errorf("standard error is %q", stderr.String())
	}
}

// A faulty backend violates guarantees. The measurement must notice this.
type faulty struct {
	timers
	onStart func(i int, d time.Duration, f func()) (time.Duration, func())
	onStop  func(stopped bool) bool
	err     error
}

func (t faulty) start(i int, d time.Duration, f func()) error {
	if t.err != nil {
		return t.err
	}
	if t.onStart != nil {
		d, f = t.onStart(i, d, f)
	}
	return t.timers.start(i, d, f)
}

func (t faulty) stop(i int) bool {
	if t.onStop != nil {
		return t.onStop(t.timers.stop(i))
	}
	return t.timers.stop(i)
}

// on returns the backend with faults.
func on(b backend, t faulty) backend {
	return backend{b.name, func(n int) timers {
		t.timers = b.open(n)
		return t
	}}
}

const testCount = 2000

// firstUnanswered returns the first request after one that is not answered.
func firstUnanswered(l *load, after int) int {
	for i := after + 1; ; i++ {
		if l.requests[i].answer == never {
			return i
		}
	}
}

// Each load is the same, and all its requests come to an end.
func TestLoad_SameForBoth(t *testing.T) {
	first := newLoad(testCount, 50*time.Millisecond)
	for _, b := range backends {
		l := newLoad(testCount, 50*time.Millisecond)
		var unanswered int64
		for i := range l.requests {
			x, y := &l.requests[i], &first.requests[i]
			if x.arrives != y.arrives || x.delay != y.delay || x.answer != y.answer {
				t.Fatalf("request %d differs", i)
			}
			if x.answer == never {
				unanswered++
			}
		}
		r, err := l.run(b)
		if err != nil || r.stopped+r.fired != testCount || r.faults() != 0 || r.fired < unanswered || unanswered < testCount/20 {
			t.Errorf("%s: %v, stopped %d, fired %d, lost %d, early %d, wrong %d", b.name, err, r.stopped, r.fired, r.lost, r.early, r.wrong)
		}
		if int64(len(r.lateness)) != r.fired || r.late(0.5) > r.late(0.99) || r.late(0.99) > r.late(1) {
			t.Errorf("%s: late %v, %v, %v", b.name, r.late(0.5), r.late(0.99), r.late(1))
		}
	}
}

// A timer that never fires is lost, even if another timer fires often.
func TestLoad_NoticesLostTimers(t *testing.T) {
	l := newLoad(testCount, 50*time.Millisecond)
	often := firstUnanswered(l, 0)
	lost := firstUnanswered(l, often)
	r, err := l.run(on(backends[0], faulty{onStart: func(i int, d time.Duration, f func()) (time.Duration, func()) {
		switch i {
		case often:
			return d, func() {
				for range 1 + testCount {
					f()
				}
			}
		case lost:
			return d, func() {}
		}
		return d, f
	}}))
	if err != nil || r.lost != 1 || r.wrong != testCount || r.early != 0 {
		t.Errorf("%v, lost %d, wrong %d, early %d", err, r.lost, r.wrong, r.early)
	}
}

func TestLoad_NoticesEarlyTimers(t *testing.T) {
	l := newLoad(testCount, 50*time.Millisecond)
	r, err := l.run(on(backends[1], faulty{onStart: func(_ int, _ time.Duration, f func()) (time.Duration, func()) { return 0, f }}))
	if err != nil || r.early == 0 || r.late(0) >= 0 {
		t.Errorf("%v, early %d of %d", err, r.early, r.fired)
	}
}

// Stop returns true, and the timer fires nevertheless.
func TestLoad_NoticesTimersThatFireAfterStop(t *testing.T) {
	l := newLoad(testCount, 50*time.Millisecond)
	b := backend{"deaf", func(n int) timers {
		return faulty{timers: deaf{backends[1].open(n)}, onStop: func(bool) bool { return true }}
	}}
	if r, err := l.run(b); err != nil || r.wrong == 0 {
		t.Errorf("%v, wrong %d", err, r.wrong)
	}
}

// deaf are timers whose stop does nothing.
type deaf struct{ timers }

func (deaf) stop(int) bool { return false }

func TestLoad_ReturnsErrorsOfStart(t *testing.T) {
	want := errors.New("no room")
	if _, err := newLoad(testCount, 50*time.Millisecond).run(on(backends[1], faulty{err: want})); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// The command fails if tickless violates a guarantee.
func TestDemo_BrokenPromisesFail(t *testing.T) {
	twice := on(backends[0], faulty{onStart: func(i int, d time.Duration, f func()) (time.Duration, func()) {
		return d, func() { f(); f() }
	}})
	var stdout, stderr strings.Builder
	err := compare(testCount, 50*time.Millisecond, []backend{twice, backends[1]}, &stdout, &stderr)
	if err == nil || !strings.Contains(stdout.String(), "broke its promises in this run: please report it") {
		t.Errorf("%v: %s", err, stdout.String())
	}
}
