package tracing

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/tickless/tickless/durable"
)

// Worker returns the option that makes a span for each attempt. It applies to all
// handlers if it is given to [durable.NewWorker], and to one if it is given to
// [durable.Worker.Handle]. Give it before other middleware, so that the span includes
// them. It panics if an option is nil.
func Worker(opts ...Option) durable.HandlerOption {
	c := newConfig("Worker", opts)
	tracer := c.tracer()
	return durable.WithMiddleware(func(next durable.Handler) durable.Handler {
		return func(ctx context.Context, d durable.Delivery) error {
			from := c.propagator.Extract(ctx, propagation.MapCarrier(d.Headers))
			options := []trace.SpanStartOption{
				trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attemptAttributes(&d)...),
			}
			scheduled := trace.SpanContextFromContext(from)
			linked := scheduled.IsValid() && scheduled.IsRemote() // and not the span of Worker.Run's context
			if linked {
				options = append(options, trace.WithLinks(trace.Link{SpanContext: scheduled}))
			}
			if !linked || !c.parent {
				options = append(options, trace.WithNewRoot())
			}
			ctx, span := tracer.Start(from, "process "+text(d.Handler), options...)
			returned := false
			defer func() {
				if !returned {
					v := recover()
					recordPanic(ctx, span, &d, v)
					if v != nil {
						defer panic(v) // for the Worker, with the stack that it has
					}
				}
				span.End()
			}()
			err := next(ctx, d)
			returned = true
			result := endAttribute(ctx, &d, err)
			span.SetAttributes(result)
			if err != nil && result.Value.AsString() != handBack && !stopped(ctx, err) {
				recordError(span, err)
			}
			return err
		}
	})
}

// attemptAttributes returns the attributes of an attempt's span.
func attemptAttributes(d *durable.Delivery) []attribute.KeyValue {
	return []attribute.KeyValue{
		system, semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess,
		semconv.MessagingDestinationName(text(d.Handler)),
		semconv.MessagingMessageID(text(d.Key)),
		semconv.MessagingMessageBodySize(len(d.Body)),
		attribute.Int("tickless.attempt", d.Attempt),
		attribute.Int("tickless.max_attempts", d.MaxAttempts),
		attribute.String("tickless.due", d.Due.UTC().Format(time.RFC3339Nano)),
	}
}

// recordPanic records that the handler did not return: it panicked with v or, if v is nil,
// ended its goroutine.
func recordPanic(ctx context.Context, span trace.Span, d *durable.Delivery, v any) {
	err := errors.New("the handler ended its goroutine")
	errorType := "goexit"
	if v != nil {
		err, errorType = fmt.Errorf("panic: %v", v), "panic"
	}
	message := text(err.Error())
	span.SetStatus(codes.Error, message)
	span.SetAttributes(semconv.ErrorTypeKey.String(errorType), failureAttribute(ctx, d, false))
	span.AddEvent(semconv.ExceptionEventName, trace.WithAttributes(
		semconv.ExceptionType(errorType), semconv.ExceptionMessage(message), semconv.ExceptionStacktrace(text(string(debug.Stack())))))
}

// stopped reports whether the error only says that the task was cancelled, which is not
// a failure.
func stopped(ctx context.Context, err error) bool {
	return errors.Is(context.Cause(ctx), durable.ErrCancelled) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, durable.ErrCancelled))
}

const handBack = "hand_back"

const endKey = attribute.Key("tickless.end")

// endAttribute returns the attribute tickless.end for the handler's result.
func endAttribute(ctx context.Context, d *durable.Delivery, err error) attribute.KeyValue {
	var never *durable.NoRetryError
	var back *durable.HandBackError
	switch {
	case err == nil:
		return endKey.String("done")
	case errors.As(err, &back) && !errors.As(err, &never), errors.Is(context.Cause(ctx), durable.ErrClosed):
		return endKey.String(handBack)
	}
	return failureAttribute(ctx, d, errors.As(err, &never))
}

// failureAttribute returns tickless.end for a failed attempt. An attempt whose handler did not return has
// failed, even if the Worker was closed.
func failureAttribute(ctx context.Context, d *durable.Delivery, never bool) attribute.KeyValue {
	switch {
	case errors.Is(context.Cause(ctx), durable.ErrCancelled):
		return endKey.String("overtaken")
	case never || d.Attempt >= d.MaxAttempts:
		return endKey.String("dead")
	}
	return endKey.String("retry")
}
