package tracing

import (
	"context"
	"maps"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/tickless/tickless/durable"
)

const schemaURL = semconv.SchemaURL

// systemAttribute is the attribute that names this library as the messaging system.
var systemAttribute = semconv.MessagingSystemKey.String("tickless")

// Client returns an option for [durable.New]. It makes a send span for each call of
// Schedule and ScheduleBatch. Client panics if an option is nil.
func Client(opts ...Option) durable.Option {
	c := newConfig("Client", opts)
	tracer := c.tracer()
	return durable.WithScheduleMiddleware(func(next durable.ScheduleFunc) durable.ScheduleFunc {
		return func(ctx context.Context, items []durable.Item, opts ...durable.ScheduleOption) ([]durable.Outcome, error) {
			if len(items) == 0 {
				return next(ctx, items, opts...) // nothing is sent
			}
			ctx, span := tracer.Start(ctx, spanName("send", items), trace.WithSpanKind(trace.SpanKindProducer),
				trace.WithAttributes(sendAttributes(items)...))
			defer span.End()
			for i := range items {
				headers := make(map[string]string, len(items[i].Task.Headers)+1)
				maps.Copy(headers, items[i].Task.Headers)
				if span.SpanContext().IsValid() {
					// Remove the headers of an older span: a handler may schedule its
					// own task again.
					for _, field := range c.propagator.Fields() {
						delete(headers, field)
					}
				}
				c.propagator.Inject(ctx, propagation.MapCarrier(headers))
				if len(headers) > 0 {
					items[i].Task.Headers = headers
				}
			}
			outcomes, err := next(ctx, items, opts...)
			if err != nil {
				recordError(span, err)
			} else if len(outcomes) == 1 {
				span.SetAttributes(attribute.String("tickless.outcome", outcomes[0].String()))
			}
			return outcomes, err
		}
	})
}

// spanName returns the name of a span: the operation and, if all items have the same
// handler, the handler.
func spanName(operation string, items []durable.Item) string {
	if handler, ok := commonHandler(items); ok {
		return operation + " " + toValidUTF8(handler)
	}
	return operation
}

// commonHandler returns the handler of the items. It returns false if they have several
// handlers. There must be at least one item.
func commonHandler(items []durable.Item) (string, bool) {
	for i := range items {
		if items[i].Task.Handler != items[0].Task.Handler {
			return "", false
		}
	}
	return items[0].Task.Handler, true
}

// sendAttributes returns the attributes of a send span.
func sendAttributes(items []durable.Item) []attribute.KeyValue {
	attributes := []attribute.KeyValue{systemAttribute, semconv.MessagingOperationName("send"), semconv.MessagingOperationTypeSend}
	if handler, ok := commonHandler(items); ok {
		attributes = append(attributes, semconv.MessagingDestinationName(toValidUTF8(handler)))
	}
	if len(items) == 1 {
		return append(attributes, semconv.MessagingMessageID(toValidUTF8(items[0].Task.Key)), semconv.MessagingMessageBodySize(len(items[0].Task.Body)))
	}
	return append(attributes, semconv.MessagingBatchMessageCount(len(items)))
}

// toValidUTF8 replaces invalid UTF-8 in s. With invalid UTF-8 in one span, an exporter
// loses the whole batch of spans.
func toValidUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// recordError sets the span's status to the error. The conventions require no event for
// the error, because the status contains it.
func recordError(span trace.Span, err error) {
	span.SetStatus(codes.Error, toValidUTF8(err.Error()))
	span.SetAttributes(semconv.ErrorType(err))
}
