package durable

import (
	"log/slog"

	"github.com/tickless/tickless/durable/store"
)

// An Option changes how [New] makes a Client.
type Option interface{ apply(*config) }

type config struct{ log *slog.Logger }

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

// A ScheduleOption changes what [Client.Schedule] does.
type ScheduleOption interface{ applySchedule(*store.Keep) }

type scheduleOption store.Keep

func (o scheduleOption) applySchedule(k *store.Keep) { *k = store.Keep(o) }

// OnlyNew leaves a task that the key has already, pending, running or dead, as
// it is: the outcome is then Kept.
func OnlyNew() ScheduleOption { return scheduleOption(store.KeepAny) }

// OnlyEarlier leaves a pending task as it is, unless the new one is due before
// it: then the outcome is Kept. It is for tasks that are to run by a time at the
// latest.
func OnlyEarlier() ScheduleOption { return scheduleOption(store.KeepEarlier) }

// OnlyLater leaves a pending task as it is, unless the new one is due after it:
// then the outcome is Kept. It is for timeouts that are only ever put off.
func OnlyLater() ScheduleOption { return scheduleOption(store.KeepLater) }
