package durable

import (
	"context"
	"slices"
)

// WithMiddleware wraps handlers in functions, for example for traces or logs. The first
// function is the outermost. Functions given to [NewWorker] are outside functions given
// to [Worker.Handle]. Handle calls each function once, and panics if the result is nil.
// WithMiddleware panics if a function is nil.
func WithMiddleware(middleware ...func(next Handler) Handler) HandlerOption {
	for _, f := range middleware {
		if f == nil {
			panic("durable: WithMiddleware: nil function")
		}
	}
	middleware = slices.Clone(middleware)
	return handlerOption(func(c *handlerConfig) { c.middleware = slices.Concat(c.middleware, middleware) })
}

func (c *handlerConfig) wrap(h Handler) Handler {
	for _, f := range slices.Backward(c.middleware) {
		if h = f(h); h == nil {
			panic("durable: Handle: a middleware returned nil")
		}
	}
	return h
}

// A ScheduleFunc schedules items, as [Client.ScheduleBatch] does.
type ScheduleFunc func(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error)

// WithScheduleMiddleware wraps [Client.Schedule] and [Client.ScheduleBatch] in
// functions, for example to add a header to all tasks. The first function is the
// outermost. It panics if a function is nil.
//
// A function may change its items. But it must replace their Bodies and Headers instead
// of writing to them, because they belong to the caller. If it does not call next, it
// must return an error.
func WithScheduleMiddleware(middleware ...func(next ScheduleFunc) ScheduleFunc) Option {
	for _, f := range middleware {
		if f == nil {
			panic("durable: WithScheduleMiddleware: nil function")
		}
	}
	middleware = slices.Clone(middleware)
	return option(func(c *config) { c.middleware = slices.Concat(c.middleware, middleware) })
}

// wrapScheduleFunc returns ScheduleBatch wrapped in the middleware, or nil if there is
// none.
func (c *Client) wrapScheduleFunc(middleware []func(ScheduleFunc) ScheduleFunc) ScheduleFunc {
	if len(middleware) == 0 {
		return nil
	}
	scheduleFunc := ScheduleFunc(func(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
		return c.schedule(ctx, "ScheduleBatch", items, opts)
	})
	for _, m := range slices.Backward(middleware) {
		if scheduleFunc = m(scheduleFunc); scheduleFunc == nil {
			panic("durable: New: a middleware of Schedule returned nil")
		}
	}
	return func(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
		return scheduleFunc(ctx, withKeys(items), opts...)
	}
}
