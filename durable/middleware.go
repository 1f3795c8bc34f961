package durable

import (
	"context"
	"slices"
)

// WithMiddleware puts functions around handlers, for what many of them have in common:
// traces, logs, limits. The first is the outermost, and those that were given to
// [NewWorker] are around those of [Worker.Handle]. Each is called once for each handler,
// by Handle, and must not return nil. A panic of a handler passes through them. A task
// that ends without a call of its handler, because it was missed for example, does not
// pass through them. WithMiddleware panics if a function is nil.
func WithMiddleware(around ...func(next Handler) Handler) HandlerOption {
	for _, f := range around {
		if f == nil {
			panic("durable: WithMiddleware with a nil function")
		}
	}
	around = slices.Clone(around)
	return handlerOption(func(c *handlerConfig) { c.around = slices.Concat(c.around, around) })
}

// wrap returns h with the middleware around it.
func (c *handlerConfig) wrap(h Handler) Handler {
	for _, f := range slices.Backward(c.around) {
		if h = f(h); h == nil {
			panic("durable: Handle: a middleware has returned nil")
		}
	}
	return h
}

// A ScheduleFunc schedules items, as [Client.ScheduleBatch] does.
type ScheduleFunc func(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error)

// WithScheduleMiddleware puts functions around [Client.Schedule], which has one item
// there, and [Client.ScheduleBatch], for what all tasks are to have: a trace's header
// for example. The first is the outermost. The items are a copy, which a function may
// change; but their Headers and bodies are the caller's: it replaces a map, and does not
// write to it. It must return what next returns, or an error if it does not call next.
// WithScheduleMiddleware panics if a function is nil.
func WithScheduleMiddleware(around ...func(next ScheduleFunc) ScheduleFunc) Option {
	for _, f := range around {
		if f == nil {
			panic("durable: WithScheduleMiddleware with a nil function")
		}
	}
	around = slices.Clone(around)
	return option(func(c *config) { c.around = slices.Concat(c.around, around) })
}

// through returns the way of items through the middleware, nil if there is none.
func (c *Client) through(around []func(ScheduleFunc) ScheduleFunc) ScheduleFunc {
	if len(around) == 0 {
		return nil
	}
	f := ScheduleFunc(c.scheduleBatch)
	for _, m := range slices.Backward(around) {
		if f = m(f); f == nil {
			panic("durable: New: a middleware of Schedule has returned nil")
		}
	}
	return func(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
		return f(ctx, withKeys(items), opts...)
	}
}
