package durable

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/jobs"
)

// An Option changes how [New] makes a Client.
type Option interface{ apply(*config) }

type config struct {
	log          *slog.Logger
	middleware   []func(ScheduleFunc) ScheduleFunc
	schedules    map[string]Schedule
	maxTaskBytes int
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithLogger sets the logger for events that no method returns, such as panics of
// handlers and new dead letters. The default is [slog.Default]. It panics if l is nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("durable: WithLogger: nil Logger")
	}
	return option(func(c *config) { c.log = l })
}

// A Schedule computes when a task runs. Use it for times that no cron spec can express,
// such as the last working day of each month. Its method Next returns the first time after a
// time, or the zero time if there is none.
type Schedule = jobs.Schedule

// WithSchedule registers a schedule that is code, under the name that tasks have in
// [Task.Schedule]; a cron spec needs no name, see [Task.Cron]. Register it with all Clients
// that schedule such tasks, or have Workers that run them. WithSchedule panics if the name is
// not a [store.IsName] or s is nil, and New panics if the name is taken.
//
// The Worker calls Next with the time at which a run was due, before each attempt. With
// [LatestMissed] it calls Next for each missed run. Several goroutines may call Next.
// If the result is not after the time given, the task becomes a dead letter.
func WithSchedule(name string, s Schedule) Option {
	if !store.IsName(name) || s == nil {
		panic(fmt.Sprintf("durable: WithSchedule: the Schedule is nil, or the name %q does not have %s", store.Shorten(name), nameRule))
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

// WithMaxTask sets the largest size of a task in bytes, instead of [MaxTask]. A batch
// may need a hundred times as much memory. It panics unless n is from 1 to 256 KiB.
func WithMaxTask(n int) Option {
	if n < 1 || n > 256<<10 {
		panic(fmt.Sprintf("durable: WithMaxTask: the size must be from 1 to %d bytes, got %d", 256<<10, n))
	}
	return option(func(c *config) { c.maxTaskBytes = n })
}

// panicIfNil panics if option i of a function is nil.
func panicIfNil(function string, i int, option any) {
	if option == nil {
		panic(fmt.Sprintf("durable: %s: option %d is nil", function, i+1))
	}
}

// A ScheduleOption changes what [Client.Schedule] does. Two different options about a key that
// already has a task, such as OnlyNew and OnlyLater, are an [ErrInvalid] in one call. A nil
// option panics.
type ScheduleOption interface{ applySchedule(*scheduleConfig) error }

// A scheduleConfig is what the options of a call say.
type scheduleConfig struct {
	ifExists store.Keep // what happens if the key already has a task
	paused   bool
	version  int64 // 0: any
	info     *Info // nil: not asked for
}

type scheduleOption func(*scheduleConfig) error

func (o scheduleOption) applySchedule(c *scheduleConfig) error { return o(c) }

func ifExistsOption(k store.Keep) ScheduleOption {
	return scheduleOption(func(c *scheduleConfig) error {
		if c.ifExists != store.KeepNone && c.ifExists != k {
			return invalidError("OnlyNew, OnlyChanged, OnlyEarlier and OnlyLater exclude one another, use one of them")
		}
		c.ifExists = k
		return nil
	})
}

func newScheduleConfig(method string, opts []ScheduleOption) (c scheduleConfig, err error) {
	for i, o := range opts {
		panicIfNil(method, i, o)
		if err := o.applySchedule(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// command returns the store's command, without items.
func (c *scheduleConfig) command() store.Command {
	x := store.Command{Op: store.Schedule, Keep: c.ifExists}
	if c.info != nil {
		x.After = new(store.Entry)
	}
	return x
}

func (c *scheduleConfig) applyTo(x *store.Item) { x.Paused, x.IfVersion = c.paused, c.version }

// A ChangeOption changes what a command on one task does.
type ChangeOption interface{ applyChange(*store.Item) error }

// A VersionOption is an option for Schedule and for commands on one task: see [IfVersion].
type VersionOption int64

// IfVersion makes a command change a task only if its [Info.Version] is v. Otherwise the outcome
// is Changed, and nothing happens. So it is too if the key of a Schedule has no task; other
// commands then have the outcome Absent. It is not for batches of several tasks.
func IfVersion(v int64) VersionOption { return VersionOption(v) }

func (o VersionOption) check() error {
	if o <= 0 {
		return invalidError("IfVersion: the version must be positive, got %d", o)
	}
	return nil
}

func (o VersionOption) applySchedule(c *scheduleConfig) error {
	c.version = int64(o)
	return o.check()
}

func (o VersionOption) applyChange(x *store.Item) error {
	x.IfVersion = int64(o)
	return o.check()
}

func (c *Client) doOneChange(ctx context.Context, method string, op store.Op, x store.Item, opts []ChangeOption) (Outcome, error) {
	if err := checkID(x.ID); err != nil {
		return Unknown, err
	}
	for i, o := range opts {
		panicIfNil(method, i, o)
		if err := o.applyChange(&x); err != nil {
			return Unknown, err
		}
	}
	return c.doOneItem(ctx, store.Command{Op: op}, x)
}

// Paused pauses the task: it waits for [Client.ResumeTask]. If the key's task is kept, it is
// not paused.
func Paused() ScheduleOption {
	return scheduleOption(func(c *scheduleConfig) error {
		c.paused = true
		return nil
	})
}

// ReturnInfo sets info to what [Client.Get] would return just after the command, without
// another access to the store. A store that does not know it leaves info as it is: package
// redisstore always, the others after [UnknownError.Again] or if the key has no task. It is for
// one task, and panics if info is nil.
func ReturnInfo(info *Info) ScheduleOption {
	if info == nil {
		panic("durable: ReturnInfo: nil Info")
	}
	return scheduleOption(func(c *scheduleConfig) error {
		c.info = info
		return nil
	})
}

// OnlyNew keeps the task that the key already has, whether pending, running or dead.
// The outcome is then Kept.
func OnlyNew() ScheduleOption { return ifExistsOption(store.KeepAny) }

// OnlyChanged keeps the key's task if it is pending or running and equals the new one.
// The outcome is then Kept. Use it to schedule repeating tasks whenever a program
// starts. A change does not lose the run that is due: see [Client.Schedule].
func OnlyChanged() ScheduleOption { return ifExistsOption(store.KeepSame) }

// OnlyEarlier replaces a pending task only if the new one is due earlier. Otherwise the
// outcome is Kept.
func OnlyEarlier() ScheduleOption { return ifExistsOption(store.KeepEarlier) }

// OnlyLater replaces a pending task only if the new one is due later. Otherwise the
// outcome is Kept. Use it to extend timeouts.
func OnlyLater() ScheduleOption { return ifExistsOption(store.KeepLater) }
