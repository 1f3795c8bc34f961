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
	provider   trace.TracerProvider
	propagator propagation.TextMapPropagator
	parent     bool
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithTracerProvider sets the TracerProvider that makes the spans. The default is the
// global one. It panics if p is nil.
func WithTracerProvider(p trace.TracerProvider) Option {
	if p == nil {
		panic("tracing: WithTracerProvider: nil TracerProvider")
	}
	return option(func(c *config) { c.provider = p })
}

// WithPropagator sets the propagator that writes a span's context into a task's headers
// and reads it. Use the same one for the Client and the Worker. The default is the
// global propagator. It panics if p is nil.
func WithPropagator(p propagation.TextMapPropagator) Option {
	if p == nil {
		panic("tracing: WithPropagator: nil TextMapPropagator")
	}
	return option(func(c *config) { c.propagator = p })
}

// WithParent makes an attempt's span a child of the send span, in its trace, in
// addition to the link. It is an option of Worker, for tasks that run once and soon.
func WithParent() Option { return option(func(c *config) { c.parent = true }) }

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
	return c.provider.Tracer("github.com/tickless/tickless/observe/otel/tracing", trace.WithSchemaURL(schema))
}
