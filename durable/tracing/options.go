package tracing

import (
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// An Option changes what [Client] and [Worker] do.
type Option interface{ apply(*config) }

type config struct {
	provider         trace.TracerProvider
	propagator       propagation.TextMapPropagator
	sendSpanIsParent bool // see WithParent
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithTracerProvider sets the TracerProvider that makes the spans. The default is the
// global TracerProvider. WithTracerProvider panics if p is nil.
func WithTracerProvider(p trace.TracerProvider) Option {
	if p == nil {
		panic("tracing: WithTracerProvider: the TracerProvider must not be nil")
	}
	return option(func(c *config) { c.provider = p })
}

// WithPropagator sets the propagator that writes a span's context into a task's headers
// and reads it. The Client and the Worker must use the same propagator. The default is
// the global one. WithPropagator panics if p is nil.
func WithPropagator(p propagation.TextMapPropagator) Option {
	if p == nil {
		panic("tracing: WithPropagator: the TextMapPropagator must not be nil")
	}
	return option(func(c *config) { c.propagator = p })
}

// WithParent makes process spans children of the send span, in the same trace. Give it to
// Worker if tasks run once and soon.
func WithParent() Option { return option(func(c *config) { c.sendSpanIsParent = true }) }

func newConfig(function string, opts []Option) config {
	c := config{provider: otel.GetTracerProvider(), propagator: otel.GetTextMapPropagator()}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("tracing: %s: option %d is nil", function, i+1))
		}
		o.apply(&c)
	}
	return c
}

func (c *config) tracer() trace.Tracer {
	return c.provider.Tracer("github.com/tickless/tickless/durable/tracing", trace.WithSchemaURL(schemaURL))
}
