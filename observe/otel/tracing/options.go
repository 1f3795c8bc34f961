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

// WithTracerProvider sets where spans go. The default is the global TracerProvider. It
// panics if p is nil.
func WithTracerProvider(p trace.TracerProvider) Option {
	if p == nil {
		panic("tracing: WithTracerProvider: nil TracerProvider")
	}
	return option(func(c *config) { c.provider = p })
}

// WithPropagator sets how a span's context is written into a task's headers, and read.
// The Client and the Worker must have the same. The default is the global propagator. It
// panics if p is nil.
func WithPropagator(p propagation.TextMapPropagator) Option {
	if p == nil {
		panic("tracing: WithPropagator: nil TextMapPropagator")
	}
	return option(func(c *config) { c.propagator = p })
}

// WithParent makes attempts children of the span of Schedule, in its trace, beside the
// link: for tasks that run once, and soon. It is for Workers.
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
