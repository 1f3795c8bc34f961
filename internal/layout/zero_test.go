package layout

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/delayqueue"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
	"github.com/tickless/tickless/timingwheel"
)

// zeroes has the exported structs of the core, by package and name.
var zeroes = map[string]any{
	"bucket.Arena": new(bucket.Arena[int]),
	"bucket.Ref":   new(bucket.Ref),

	"delayqueue.Queue":  new(delayqueue.Queue[int]),
	"delayqueue.Ticket": new(delayqueue.Ticket),

	"executor.Goroutines": new(executor.Goroutines),
	"executor.Inline":     new(executor.Inline),
	"executor.Pool":       new(executor.Pool),
	"executor.Stats":      new(executor.Stats),

	"idle.Conn":       new(idle.Conn),
	"idle.Conns":      new(idle.Conns),
	"idle.ConnsStats": new(idle.ConnsStats),
	"idle.Entry":      new(idle.Entry[int]),
	"idle.Listener":   new(idle.Listener),
	"idle.Monitor":    new(idle.Monitor[int]),
	"idle.Stats":      new(idle.Stats),

	"jobs.Job":     new(jobs.Job),
	"keyed.Item":   new(keyed.Item[int, int]),
	"keyed.Timers": new(keyed.Timers[int, int]),

	"purgatory.Delayed":   new(purgatory.Delayed[int]),
	"purgatory.Purgatory": new(purgatory.Purgatory[int]),
	"purgatory.Stats":     new(purgatory.Stats),

	"timer.Handle":       new(timer.Handle),
	"timer.Histogram":    new(timer.Histogram),
	"timer.Leftover":     new(timer.Leftover),
	"timer.PendingTimer": new(timer.PendingTimer),
	"timer.Scheduler":    new(timer.Scheduler),
	"timer.Stats":        new(timer.Stats),
	"timer.Ticker":       new(timer.Ticker),
	"timer.Timer":        new(timer.Timer),

	"timertest.Clock": new(timertest.Clock),

	"timingwheel.Expired": new(timingwheel.Expired[int]),
	"timingwheel.ID":      new(timingwheel.ID),
	"timingwheel.Wheel":   new(timingwheel.Wheel[int]),
}

// Each method of a zero value does something useful, or panics with the name of the
// function to call first. No method crashes or hangs.
func TestZeroValues_AreUsefulOrSayWhatToCall(t *testing.T) {
	for name, zero := range zeroes {
		if name == "bucket.Arena" {
			continue // its methods need entries and buckets
		}
		v := reflect.ValueOf(zero)
		for i := range v.NumMethod() {
			method := v.Type().Method(i).Name
			t.Run(name+"."+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					v := reflect.New(v.Type().Elem()) // a new zero value for each method
					message := panicOf(func() { call(v.Method(i)) })
					if message == "" {
						return
					}
					pkg, _, _ := strings.Cut(name, ".")
					if !strings.HasPrefix(message, pkg+": ") {
						t.Errorf("it panics: %s", message)
					}
				})
			})
		}
	}
}

// A zero value that could silently do the wrong thing panics instead.
func TestZeroValues_Refuse(t *testing.T) {
	for name, f := range map[string]func(){
		"timingwheel: a Wheel that was not made by New":          func() { new(timingwheel.Wheel[int]).Add(1<<40, 1) },
		"timer: a Scheduler that was not made by New":            func() { new(timer.Scheduler).Start(1, func() {}) },
		"idle: an Entry that was not made by Monitor.Watch":      func() { new(idle.Entry[int]).TouchAt(1) },
		"purgatory: a Purgatory that was not made by New":        func() { new(purgatory.Purgatory[int]).CheckAndComplete(1) },
		"executor: a Pool that was not made by NewPool":          func() { new(executor.Pool).Submit(func() {}) },
		"timer: Stop called on uninitialized Timer":              func() { new(timer.Timer).Stop() },
		"jobs: a Job that was not made by Periodic or Calendar":  func() { new(jobs.Job).Stop() },
		"idle: a Conns that was not made by NewConns":            func() { new(idle.Conns).Wrap(nil) },
		"idle: a Monitor that was not made by New":               func() { new(idle.Monitor[int]).Watch(1, 1) },
		"keyed: Timers that were not made by New":                func() { new(keyed.Timers[int, int]).Set(1, 1, 1) },
		"purgatory: New with a nil Scheduler":                    func() { purgatory.New[int](nil) },
		"keyed: New with a nil Scheduler or func":                func() { keyed.New[int, int](nil, func(int, int) {}) },
		"executor: an Inline or Goroutines that was not made by": func() { new(executor.Inline).Submit(func() {}) },
	} {
		if got := panicOf(f); !strings.HasPrefix(got, name) {
			t.Errorf("it panics with %q, want %q", got, name)
		}
	}
}

// A zero Queue is ready to use.
func TestZeroValues_Queue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q delayqueue.Queue[string]
		q.OfferAfter("a", time.Second)
		begin := time.Now()
		if v, err := q.Take(t.Context()); v != "a" || err != nil || time.Since(begin) != time.Second {
			t.Error(v, err, time.Since(begin))
		}
	})
}

// call calls a method with plausible arguments. If a result is an iterator, call starts
// it.
func call(m reflect.Value) {
	typ := m.Type()
	var args []reflect.Value
	for i := range typ.NumIn() {
		if typ.IsVariadic() && i == typ.NumIn()-1 {
			break
		}
		args = append(args, argument(typ.In(i)))
	}
	for _, r := range m.Call(args) {
		if r.Kind() == reflect.Func && r.Type().CanSeq() && !r.IsNil() {
			for range r.Seq() {
				break
			}
		}
	}
}

func argument(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[context.Context]():
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		v.Set(reflect.ValueOf(ctx))
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Now()))
	case t == reflect.TypeFor[[]byte]():
		v.Set(reflect.ValueOf(make([]byte, 1)))
	case t == reflect.TypeFor[[]func()]():
		v.Set(reflect.ValueOf([]func(){func() {}}))
	case t.Kind() == reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) (results []reflect.Value) {
			for i := range t.NumOut() {
				results = append(results, reflect.Zero(t.Out(i)))
			}
			return results
		}))
	case v.CanInt() && v.Kind() == reflect.Int64:
		v.SetInt(1) // for example a time.Duration
	}
	return v
}

func panicOf(f func()) (message string) {
	defer func() {
		if p := recover(); p != nil {
			message = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}
