package durable

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// An Option changes how [New] makes a Client.
type Option interface{ apply(*config) }

type config struct {
	log        *slog.Logger
	middleware []func(ScheduleFunc) ScheduleFunc
	schedules  map[string]Schedule
	maxTask    int
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithLogger sets the logger for events that no call returns: failed commands of the
// Client's Workers, panics of handlers, dead letters. The default is [slog.Default]. It
// panics if l is nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("durable: WithLogger: nil Logger")
	}
	return option(func(c *config) { c.log = l })
}

// A Schedule computes the times of a task's runs. Use one if no cron spec can express
// them, for example the last working day of each month.
type Schedule interface {
	// Next returns the first time after t, or the zero time if there is none.
	Next(t time.Time) time.Time
}

// WithSchedule registers a schedule for tasks that name it in [Task.Schedule].
// Client.Schedule refuses a name that is not registered. All Clients of the store that
// have Workers should register the same schedules.
//
// Before each attempt the Worker calls Next with the time at which the run was due.
// With [LatestMissed], it calls Next for each missed run. Several goroutines may call
// Next. The task occupies its place in the Worker until Next returns.
//
// If the result of Next is not after the time given, the task becomes a dead letter
// without a call of its handler. Runs are at least a millisecond apart: if Next returns
// an earlier time, the run is moved. WithSchedule panics if the name is empty or taken,
// or s is nil.
func WithSchedule(name string, s Schedule) Option {
	if name == "" || s == nil {
		panic("durable: WithSchedule: empty name or nil Schedule")
	}
	return option(func(c *config) {
		if c.schedules[name] != nil {
			panic(fmt.Sprintf("durable: WithSchedule: the schedule %q already exists", name))
		}
		if c.schedules == nil {
			c.schedules = make(map[string]Schedule)
		}
		c.schedules[name] = s
	})
}

// WithMaxTask sets the largest size of a task in bytes. [MaxTask], the default, says
// what counts. A batch, or a worker's claim, may need a hundred times as much memory.
// It panics unless n is from 1 to 256 KB.
func WithMaxTask(n int) Option {
	if n < 1 || n > 256<<10 {
		panic(fmt.Sprintf("durable: WithMaxTask: the size must be from 1 to %d bytes, got %d", 256<<10, n))
	}
	return option(func(c *config) { c.maxTask = n })
}

// notNil panics if an option of the function is nil. i is its index.
func notNil(function string, i int, option any) {
	if option == nil {
		panic(fmt.Sprintf("durable: %s: option %d is nil", function, i+1))
	}
}

// A ScheduleOption changes what [Client.Schedule] does if the key already has a task.
// OnlyNew, OnlyChanged, OnlyEarlier and OnlyLater exclude one another: with two of them
// in one call, the error is an [ErrInvalid]. A nil option panics.
type ScheduleOption interface{ keep() store.Keep }

type scheduleOption store.Keep

func (o scheduleOption) keep() store.Keep { return store.Keep(o) }

// scheduleCommand returns the store's command for the options of a method.
func scheduleCommand(method string, opts []ScheduleOption) (store.Command, error) {
	c := store.Command{Op: store.Schedule}
	for i, o := range opts {
		notNil(method, i, o)
		if c.Keep != store.KeepNone && c.Keep != o.keep() {
			return c, invalidError("OnlyNew, OnlyChanged, OnlyEarlier and OnlyLater exclude one another, use one of them")
		}
		c.Keep = o.keep()
	}
	return c, nil
}

// OnlyNew keeps the task that the key already has, whether pending, running or dead.
// The outcome is then Kept.
func OnlyNew() ScheduleOption { return scheduleOption(store.KeepAny) }

// OnlyChanged keeps the key's task, with its time, if it is pending or running and
// equals the new Task. The outcome is then Kept. So a program can schedule its
// repeating tasks at every start, without losing or repeating a run.
func OnlyChanged() ScheduleOption { return scheduleOption(store.KeepSame) }

// OnlyEarlier replaces a pending task only if the new one is due before it. Otherwise
// the outcome is Kept. Use it for tasks that must run by some time at the latest.
func OnlyEarlier() ScheduleOption { return scheduleOption(store.KeepEarlier) }

// OnlyLater replaces a pending task only if the new one is due after it. Otherwise the
// outcome is Kept. Use it for timeouts that are only ever extended.
func OnlyLater() ScheduleOption { return scheduleOption(store.KeepLater) }
