package tracing_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/tracing"
)

// The span of an attempt links to the send span.
func Example() {
	spans := tracetest.NewInMemoryExporter() // a program uses an exporter of OpenTelemetry
	provider := tracing.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	propagator := tracing.WithPropagator(propagation.TraceContext{})

	client := durable.New(memstore.New(), tracing.Client(provider, propagator))
	worker := durable.NewWorker(client, tracing.Worker(provider, propagator))
	done := make(chan struct{})
	worker.Handle("remind", func(context.Context, durable.Delivery) error {
		close(done)
		return nil
	})
	client.Schedule(context.Background(), durable.Task{Key: "order-17", Handler: "remind"}, durable.After(0))
	go worker.Run(context.Background())
	<-done
	worker.Shutdown(context.Background())

	all := spans.GetSpans()
	fmt.Println(all[0].Name, all[0].SpanKind)
	fmt.Println(all[1].Name, all[1].SpanKind, all[1].Links[0].SpanContext.Equal(all[0].SpanContext.WithRemote(true)))
	// Output:
	// send remind producer
	// process remind consumer true
}
