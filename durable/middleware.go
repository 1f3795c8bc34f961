package durable

import (
	"context"
	"slices"
)

// WithMiddleware wraps handlers with functions, for example for traces, logs or limits.
// The first function is the outermost. Functions given to [NewWorker] are outside of
// functions given to [Worker.Handle]. Handle calls each function once for each handler; the
// function must not return nil.
//
// A panic of a handler passes through the middleware. If a task ends without a call of
// its handler, for example because it was missed, the middleware is not called either.
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

// wrap returns h inside the middleware.
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

// WithScheduleMiddleware wraps [Client.Schedule] and [Client.ScheduleBatch] with
// functions, for example to add a trace header to all tasks. Schedule passes a single
// item. The first function is the outermost.
//
// A function may change the items, which are a copy. It must not write to their Bodies
// and Headers, which belong to the caller, but may replace them. It must return the
// results of next, or an error if it does not call next. WithScheduleMiddleware panics
// if a function is nil.
func WithScheduleMiddleware(middleware ...func(next ScheduleFunc) ScheduleFunc) Option {
	for _, f := range middleware {
		if f == nil {
			panic("durable: WithScheduleMiddleware: nil function")
		}
	}
	middleware = slices.Clone(middleware)
	return option(func(c *config) { c.middleware = slices.Concat(c.middleware, middleware) })
}

// wrapSchedule returns ScheduleBatch inside the middleware, or nil if there is none.
func (c *Client) wrapSchedule(middleware []func(ScheduleFunc) ScheduleFunc) ScheduleFunc {
	if len(middleware) == 0 {
		return nil
	}
	f := ScheduleFunc(c.scheduleBatch)
	for _, m := range slices.Backward(middleware) {
		if f = m(f); f == nil {
			panic("durable: New: a middleware of Schedule returned nil")
		}
	}
	return func(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
		return f(ctx, withKeys(items), opts...)
	}
}
