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
	log       *slog.Logger
	around    []func(ScheduleFunc) ScheduleFunc
	schedules map[string]Schedule
	maxTask   int
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithLogger sets where the Client's Workers report what nobody else is told: commands
// that fail, handlers that panic, tasks that became dead letters. The default is
// [slog.Default]. It panics if l is nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("durable: WithLogger with a nil Logger")
	}
	return option(func(c *config) { c.log = l })
}

// A Schedule says when the runs of a task come, where no cron spec can: on the last
// working day of a month, for example.
type Schedule interface {
	// Next returns the first time after t, or the zero time if there is none.
	Next(t time.Time) time.Time
}

// WithSchedule tells the Client and its Workers a schedule for tasks that name it in
// [Task.Schedule]: Schedule refuses a name that the Client does not know. All Clients of the
// store that have Workers should know the same. Its Next is called before each attempt, with the time at which the
// run was due, by several goroutines. Runs are at least a millisecond apart: what
// Next returns is moved to that. If it returns a time that is not after the one it
// was given, the task becomes a dead letter, and its handler is not called. Until it
// returns the task keeps its place in the worker, and [LatestMissed] calls it for each
// run that was missed. It panics if the name is empty or taken, or s is nil.
func WithSchedule(name string, s Schedule) Option {
	if name == "" || s == nil {
		panic("durable: WithSchedule with no name or a nil Schedule")
	}
	return option(func(c *config) {
		if c.schedules[name] != nil {
			panic(fmt.Sprintf("durable: WithSchedule: there is a schedule %q already", name))
		}
		if c.schedules == nil {
			c.schedules = make(map[string]Schedule)
		}
		c.schedules[name] = s
	})
}

// WithMaxTask sets the largest size of a task, in bytes, which it counts as [MaxTask] does,
// the default. A batch, and what a worker claims at once, may take so much memory a hundred
// times. It panics unless n is from 1 to 256 KB.
func WithMaxTask(n int) Option {
	if n < 1 || n > 256<<10 {
		panic(fmt.Sprintf("durable: WithMaxTask: the size must be from 1 to %d bytes, it is %d", 256<<10, n))
	}
	return option(func(c *config) { c.maxTask = n })
}

// notNil panics if an option of the function is nil.
func notNil(function string, i int, option any) {
	if option == nil {
		panic(fmt.Sprintf("durable: %s: option %d is nil", function, i+1))
	}
}

// A ScheduleOption changes what [Client.Schedule] does. OnlyNew, OnlyChanged, OnlyEarlier
// and OnlyLater exclude one another: a call with two of them fails with [ErrInvalid].
// A nil option panics.
type ScheduleOption interface{ keep() store.Keep }

type scheduleOption store.Keep

func (o scheduleOption) keep() store.Keep { return store.Keep(o) }

// scheduling returns the command that the options of a method ask for.
func scheduling(method string, opts []ScheduleOption) (store.Command, error) {
	c := store.Command{Op: store.Schedule}
	for i, o := range opts {
		notNil(method, i, o)
		if c.Keep != store.KeepNone && c.Keep != o.keep() {
			return c, invalid("OnlyNew, OnlyChanged, OnlyEarlier and OnlyLater exclude one another, use one of them")
		}
		c.Keep = o.keep()
	}
	return c, nil
}

// OnlyNew leaves a task that the key has already, pending, running or dead, as
// it is: the outcome is then Kept.
func OnlyNew() ScheduleOption { return scheduleOption(store.KeepAny) }

// OnlyChanged leaves a task that the key has already as it is, with its time, if it is
// pending or running and nothing of the Task differs: then the outcome is Kept. So programs
// can schedule their repeating tasks whenever they start, and no run is lost or doubled.
func OnlyChanged() ScheduleOption { return scheduleOption(store.KeepSame) }

// OnlyEarlier leaves a pending task as it is, unless the new one is due before
// it: then the outcome is Kept. It is for tasks that are to run by a time at the
// latest.
func OnlyEarlier() ScheduleOption { return scheduleOption(store.KeepEarlier) }

// OnlyLater leaves a pending task as it is, unless the new one is due after it:
// then the outcome is Kept. It is for timeouts that are only ever put off.
func OnlyLater() ScheduleOption { return scheduleOption(store.KeepLater) }
