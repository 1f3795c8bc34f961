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

// Worker returns an option that makes a span for each attempt. Give it to
// [durable.NewWorker], or to [durable.Worker.Handle] for one handler. Put it before other
// middleware, so that the span includes their time. Worker panics if an option is nil.
func Worker(opts ...Option) durable.HandlerOption {
	c := newConfig("Worker", opts)
	tracer := c.tracer()
	return durable.WithMiddleware(func(next durable.Handler) durable.Handler {
		return func(ctx context.Context, d durable.Delivery) error {
			extractedCtx := c.propagator.Extract(ctx, propagation.MapCarrier(d.Headers))
			spanOptions := []trace.SpanStartOption{
				trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attemptAttributes(&d)...),
			}
			sendSpanContext := trace.SpanContextFromContext(extractedCtx)
			hasSendSpan := sendSpanContext.IsValid() && sendSpanContext.IsRemote() // not remote: the span of Worker.Run's context
			if hasSendSpan {
				spanOptions = append(spanOptions, trace.WithLinks(trace.Link{SpanContext: sendSpanContext}))
			}
			if !hasSendSpan || !c.sendSpanIsParent {
				spanOptions = append(spanOptions, trace.WithNewRoot())
			}
			ctx, span := tracer.Start(extractedCtx, "process "+toValidUTF8(d.Handler), spanOptions...)
			handlerReturned := false
			defer func() {
				if !handlerReturned {
					v := recover()
					recordPanic(ctx, span, &d, v)
					if v != nil {
						defer panic(v) // for the Worker, which logs v with the handler's stack
					}
				}
				span.End()
			}()
			err := next(ctx, d)
			handlerReturned = true
			endAttr := endAttribute(ctx, &d, err)
			span.SetAttributes(endAttr)
			if err != nil && endAttr.Value.AsString() != handBackValue && !isCancellation(ctx, err) {
				recordError(span, err)
			}
			return err
		}
	})
}

// attemptAttributes returns the attributes of an attempt's span.
func attemptAttributes(d *durable.Delivery) []attribute.KeyValue {
	return []attribute.KeyValue{
		systemAttribute, semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess,
		semconv.MessagingDestinationName(toValidUTF8(d.Handler)),
		semconv.MessagingMessageID(toValidUTF8(d.Key)),
		semconv.MessagingMessageBodySize(len(d.Body)),
		attribute.Int("tickless.attempt", d.Attempt),
		attribute.Int("tickless.max_attempts", d.MaxAttempts),
		attribute.String("tickless.due", d.Due.UTC().Format(time.RFC3339Nano)),
	}
}

// recordPanic records that the handler panicked with v. If v is nil, the handler has
// ended its goroutine instead.
func recordPanic(ctx context.Context, span trace.Span, d *durable.Delivery, v any) {
	err := errors.New("the handler ended its goroutine")
	errorType := "goexit"
	if v != nil {
		err, errorType = fmt.Errorf("panic: %v", v), "panic"
	}
	errorMessage := toValidUTF8(err.Error())
	span.SetStatus(codes.Error, errorMessage)
	span.SetAttributes(semconv.ErrorTypeKey.String(errorType), failureAttribute(ctx, d, false))
	span.AddEvent(semconv.ExceptionEventName, trace.WithAttributes(
		semconv.ExceptionType(errorType), semconv.ExceptionMessage(errorMessage), semconv.ExceptionStacktrace(toValidUTF8(string(debug.Stack())))))
}

// isCancellation reports whether the only reason for the error is that the task was
// cancelled. This is not a failure.
func isCancellation(ctx context.Context, err error) bool {
	return errors.Is(context.Cause(ctx), durable.ErrCancelled) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, durable.ErrCancelled))
}

const handBackValue = "hand_back"

const endKey = attribute.Key("tickless.end")

// endAttribute returns the attribute tickless.end for the handler's result.
func endAttribute(ctx context.Context, d *durable.Delivery, err error) attribute.KeyValue {
	var noRetry *durable.NoRetryError
	var handedBack *durable.HandBackError
	switch {
	case err == nil:
		return endKey.String("done")
	case errors.As(err, &handedBack) && !errors.As(err, &noRetry), errors.Is(context.Cause(ctx), durable.ErrClosed):
		return endKey.String(handBackValue)
	}
	return failureAttribute(ctx, d, errors.As(err, &noRetry))
}

// failureAttribute returns the attribute tickless.end for a failed attempt. noRetry is true
// if the handler's error forbids another attempt.
func failureAttribute(ctx context.Context, d *durable.Delivery, noRetry bool) attribute.KeyValue {
	switch {
	case errors.Is(context.Cause(ctx), durable.ErrCancelled):
		return endKey.String("overtaken")
	case noRetry || d.Attempt >= d.MaxAttempts:
		return endKey.String("dead")
	}
	return endKey.String("retry")
}
