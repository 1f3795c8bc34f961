package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is a Client and a Worker whose spans are recorded in memory.
type bench struct {
	spans  *tracetest.InMemoryExporter
	tracer trace.Tracer
	client *durable.Client
	worker *durable.Worker
	log    strings.Builder // behind the handler's lock
}

// newBench must be called in a bubble. Register the worker's handlers before run.
func newBench(opts ...tracing.Option) *bench {
	b := &bench{spans: tracetest.NewInMemoryExporter()}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(b.spans))
	b.tracer = provider.Tracer("test")
	opts = append([]tracing.Option{
		tracing.WithTracerProvider(provider),
		tracing.WithPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})),
	}, opts...)
	log := durable.WithLogger(slog.New(slog.NewTextHandler(&b.log, nil)))
	b.client = durable.New(memstore.New(), log, tracing.Client(opts...))
	b.worker = durable.NewWorker(b.client, tracing.Worker(opts...), durable.WithMaxAttempts(2), durable.WithBackoff(time.Second, time.Second))
	return b
}

// run runs the worker for d and returns the spans.
func (b *bench) run(t *testing.T, ctx context.Context, d time.Duration) tracetest.SpanStubs {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- b.worker.Run(ctx) }()
	time.Sleep(d)
	b.worker.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return b.spans.GetSpans()
}

func attributes(s tracetest.SpanStub) map[string]string {
	all := make(map[string]string)
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

func (b *bench) schedule(t *testing.T, ctx context.Context, task durable.Task, w durable.When) {
	t.Helper()
	if _, err := b.client.Schedule(ctx, task, w); err != nil {
		t.Fatal(err)
	}
}

// An attempt has its own trace, with a link to the send span. Spans of the handler are in
// the attempt's trace.
func TestSpans_LinkAttemptsToSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.worker.Handle("remind", func(ctx context.Context, d durable.Delivery) error {
			if d.Headers["user"] != "7" {
				t.Errorf("the headers are %v", d.Headers)
			}
			_, inner := b.tracer.Start(ctx, "inner")
			inner.End()
			if d.Attempt == 1 {
				return errors.New("no such address")
			}
			return nil
		})
		headers := map[string]string{"user": "7"}
		ctx, request := b.tracer.Start(t.Context(), "request")
		b.schedule(t, ctx, durable.Task{Key: "order-17", Handler: "remind", Body: []byte("abc"), Headers: headers}, durable.After(time.Hour))
		request.End()
		if len(headers) != 1 {
			t.Errorf("the caller's headers were changed: %v", headers)
		}
		due := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
		spans := b.run(t, context.Background(), 2*time.Hour)

		var names []string
		for _, s := range spans {
			names = append(names, s.Name)
		}
		if got, want := fmt.Sprint(names), "[send remind request inner process remind inner process remind]"; got != want {
			t.Fatalf("the spans are %s, want %s", got, want)
		}
		send, first, second := spans[0], spans[3], spans[5]
		if send.SpanKind != trace.SpanKindProducer || send.Parent.SpanID() != request.SpanContext().SpanID() {
			t.Errorf("the span of Schedule has the kind %v and the parent %v", send.SpanKind, send.Parent.SpanID())
		}
		same(t, attributes(send), map[string]string{
			"messaging.system": "tickless", "messaging.operation.name": "send", "messaging.operation.type": "send",
			"messaging.destination.name": "remind", "messaging.message.id": "order-17", "messaging.message.body.size": "3",
			"tickless.outcome": "created",
		})
		for i, s := range []tracetest.SpanStub{first, second} {
			if s.SpanKind != trace.SpanKindConsumer || s.Parent.IsValid() {
				t.Errorf("attempt %d has the kind %v and the parent %v", i+1, s.SpanKind, s.Parent.SpanID())
			}
			if s.SpanContext.TraceID() == send.SpanContext.TraceID() {
				t.Errorf("attempt %d is in the trace of Schedule", i+1)
			}
			if len(s.Links) != 1 || s.Links[0].SpanContext.SpanID() != send.SpanContext.SpanID() || s.Links[0].SpanContext.TraceID() != send.SpanContext.TraceID() {
				t.Errorf("attempt %d has the links %v", i+1, s.Links)
			}
			if inner := spans[2+2*i]; inner.Parent.SpanID() != s.SpanContext.SpanID() {
				t.Errorf("the handler's span is not a child of attempt %d", i+1)
			}
		}
		common := map[string]string{
			"messaging.system": "tickless", "messaging.operation.name": "process", "messaging.operation.type": "process",
			"messaging.destination.name": "remind", "messaging.message.id": "order-17", "messaging.message.body.size": "3",
			"tickless.max_attempts": "2", "tickless.due": due,
		}
		same(t, attributes(first), common, map[string]string{"tickless.attempt": "1", "tickless.end": "retry", "error.type": "*errors.errorString"})
		same(t, attributes(second), common, map[string]string{"tickless.attempt": "2", "tickless.end": "done"})
		if first.Status.Code != codes.Error || first.Status.Description != "no such address" || second.Status.Code != codes.Unset {
			t.Errorf("the attempts' statuses are %v and %v", first.Status, second.Status)
		}
	})
}

func same(t *testing.T, got map[string]string, wants ...map[string]string) {
	t.Helper()
	n := 0
	for _, want := range wants {
		n += len(want)
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s is %q, want %q", k, got[k], v)
			}
		}
	}
	if len(got) != n {
		t.Errorf("the attributes are %v, want %v", got, wants)
	}
}

func TestWithParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(tracing.WithParent())
		b.worker.Handle("h", func(context.Context, durable.Delivery) error { return nil })
		b.schedule(t, t.Context(), durable.Task{Key: "a", Handler: "h"}, durable.After(0))
		spans := b.run(t, context.Background(), time.Minute)
		if len(spans) != 2 || spans[1].Parent.SpanID() != spans[0].SpanContext.SpanID() || len(spans[1].Links) != 1 {
			t.Errorf("the attempt is not a child of the send span: %v", spans)
		}
	})
}

// The attempts of a task without headers have no link. They do not link to the span in
// the context of Worker.Run either.
func TestSpans_TaskWithoutHeaders(t *testing.T) {
	for name, opts := range map[string][]tracing.Option{"root": nil, "parent": {tracing.WithParent()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(opts...)
				b.worker.Handle("h", func(context.Context, durable.Delivery) error { return nil })
				plain := durable.New(b.client.Store())
				if _, err := plain.Schedule(t.Context(), durable.Task{Key: "a", Handler: "h"}, durable.After(0)); err != nil {
					t.Fatal(err)
				}
				ctx, main := b.tracer.Start(context.Background(), "main")
				spans := b.run(t, ctx, time.Minute)
				main.End()
				if len(spans) != 1 || len(spans[0].Links) != 0 || spans[0].Parent.IsValid() {
					t.Errorf("got %v", spans)
				}
			})
		})
	}
}

// An attempt's span shows the handler's result. A panic of the handler reaches the
// Worker.
func TestSpans_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		handed := 0
		for name, h := range map[string]durable.Handler{
			"panic": func(context.Context, durable.Delivery) error { panic("on purpose") },
			"never": func(context.Context, durable.Delivery) error { return durable.NoRetry(errors.New("no")) },
			"full": func(context.Context, durable.Delivery) error {
				if handed++; handed == 1 {
					return durable.HandBack(errors.New("no room"), time.Second)
				}
				return nil
			},
			"exit": func(context.Context, durable.Delivery) error { runtime.Goexit(); return nil },
			"cancelled": func(ctx context.Context, d durable.Delivery) error {
				if _, err := b.client.Cancel(ctx, d.Key); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return ctx.Err()
			},
			"cancelled, failed": func(ctx context.Context, d durable.Delivery) error {
				if _, err := b.client.Cancel(ctx, d.Key); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return durable.NoRetry(errors.New("half of it is done"))
			},
			"hang": func(ctx context.Context, _ durable.Delivery) error {
				<-ctx.Done()
				return ctx.Err()
			},
		} {
			b.worker.Handle(name, h)
			b.schedule(t, t.Context(), durable.Task{Key: name, Handler: name}, durable.After(0))
		}
		got, events := make(map[string]string), make(map[string]tracetest.SpanStub)
		for _, s := range b.run(t, context.Background(), time.Minute) {
			if s.SpanKind == trace.SpanKindConsumer {
				events[s.Name] = s
				got[s.Name] += fmt.Sprint(attributes(s)["tickless.end"], " ", s.Status.Code, " ", attributes(s)["error.type"], "; ")
			}
		}
		same(t, got, map[string]string{
			"process panic": "retry Error panic; dead Error panic; ",
			"process never": "dead Error *durable.NoRetryError; ",
			"process full":  "hand_back Unset ; done Unset ; ",
			"process hang":  "hand_back Unset ; ",
			"process exit":  "retry Error goexit; dead Error goexit; ",

			"process cancelled":         "overtaken Unset ; ",
			"process cancelled, failed": "overtaken Error *durable.NoRetryError; ",
		})
		for name, s := range events {
			if want := name == "process panic" || name == "process exit"; (len(s.Events) == 1) != want {
				t.Errorf("%s has %d events", name, len(s.Events))
			}
		}
		s := events["process panic"]
		event := make(map[string]string)
		for _, a := range s.Events[0].Attributes {
			event[string(a.Key)] = a.Value.AsString()
		}
		if s.Status.Description != "panic: on purpose" || s.Events[0].Name != "exception" ||
			event["exception.message"] != "panic: on purpose" || event["exception.type"] != "panic" ||
			!strings.Contains(event["exception.stacktrace"], "TestSpans_Ends.func") {
			t.Errorf("the panic is %q, %v", s.Status.Description, event)
		}
		// The Worker's own log message has the stack of the handler too.
		if !strings.Contains(b.log.String(), "TestSpans_Ends.func") {
			t.Errorf("the log lacks the stack: %s", &b.log)
		}
	})
}

// If a handler panics or ends its goroutine after the Worker was closed, the span shows a
// failure, as the Worker's counters do.
func TestSpans_PanicAfterShutdown(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("on purpose") }, "goexit": runtime.Goexit} {
		for attempts, want := range map[int]string{1: "dead", 2: "retry"} {
			t.Run(fmt.Sprint(name, " ", want), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench()
					b.worker.Handle("h", func(ctx context.Context, _ durable.Delivery) error {
						<-ctx.Done()
						if cause := context.Cause(ctx); !errors.Is(cause, durable.ErrClosed) {
							t.Errorf("the cause of the context's end is %v", cause)
						}
						leave()
						return nil
					}, durable.WithMaxAttempts(attempts))
					b.schedule(t, t.Context(), durable.Task{Key: "k", Handler: "h"}, durable.After(0))
					spans := b.run(t, context.Background(), time.Minute)
					if len(spans) != 2 {
						t.Fatalf("%d spans, want 2", len(spans))
					}
					got := attributes(spans[1])
					if got["tickless.end"] != want || got["error.type"] != name {
						t.Errorf("the span has %v, want %s and %s", got, want, name)
					}
					st := b.worker.HandlerStats()[0]
					if counted := map[string]int64{"dead": st.Died, "retry": st.Retried}[want]; counted != 1 || st.Released != 0 {
						t.Errorf("the Worker has counted %+v", st)
					}
				})
			})
		}
	}
}

func TestSpans_Batches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		item := func(key, handler string) durable.Item {
			return durable.Item{Task: durable.Task{Key: key, Handler: handler}, When: durable.After(time.Hour)}
		}
		for _, items := range [][]durable.Item{{item("a", "h"), item("b", "h")}, {item("a", "h"), item("c", "other")}} {
			if _, err := b.client.ScheduleBatch(t.Context(), items); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.client.ScheduleBatch(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.client.Schedule(t.Context(), durable.Task{Key: "bad", Handler: "h"}, durable.After(-1)); err == nil {
			t.Fatal("Schedule accepted a negative duration")
		}
		spans := b.spans.GetSpans()
		if len(spans) != 3 {
			t.Fatalf("there are %d spans", len(spans))
		}
		if spans[0].Name != "send h" || attributes(spans[0])["messaging.batch.message_count"] != "2" {
			t.Errorf("got %s with %v", spans[0].Name, attributes(spans[0]))
		}
		if _, has := attributes(spans[1])["messaging.destination.name"]; spans[1].Name != "send" || has {
			t.Errorf("got %s with %v", spans[1].Name, attributes(spans[1]))
		}
		if spans[2].Status.Code != codes.Error || attributes(spans[2])["error.type"] == "" {
			t.Errorf("got %v with %v", spans[2].Status, attributes(spans[2]))
		}
		for key, span := range map[string]int{"a": 1, "b": 0, "c": 1} {
			info, err := b.client.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			from := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(info.Task.Headers))
			if got := trace.SpanContextFromContext(from).SpanID(); got != spans[span].SpanContext.SpanID() {
				t.Errorf("%s has the headers of the span %v", key, got)
			}
		}
	})
}

func TestOptions_RefuseNil(t *testing.T) {
	for want, f := range map[string]func(){
		"tracing: Client: option 1 is nil":                                func() { tracing.Client(nil) },
		"tracing: Worker: option 2 is nil":                                func() { tracing.Worker(tracing.WithParent(), nil) },
		"tracing: WithTracerProvider: the TracerProvider must not be nil": func() { tracing.WithTracerProvider(nil) },
		"tracing: WithPropagator: the TextMapPropagator must not be nil":  func() { tracing.WithPropagator(nil) },
	} {
		func() {
			defer func() {
				if v := recover(); v != want {
					t.Errorf("got the panic %v, want %q", v, want)
				}
			}()
			f()
		}()
	}
}

// Spans are valid UTF-8 for all keys, handlers' names and error texts. Otherwise an
// exporter would refuse a whole batch.
func TestSpans_AreUTF8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.worker.Handle("h\u2028", func(context.Context, durable.Delivery) error {
			return durable.NoRetry(errors.New("answer: \xfe"))
		})
		b.schedule(t, context.Background(), durable.Task{Key: "k\u2028", Handler: "h\u2028"}, durable.After(time.Second))
		spans := b.run(t, context.Background(), time.Minute)
		if len(spans) != 2 {
			t.Fatalf("%d spans, want 2", len(spans))
		}
		for _, s := range spans {
			texts := []string{s.Name, s.Status.Description}
			for _, a := range attributes(s) {
				texts = append(texts, a)
			}
			for _, x := range texts {
				if !utf8.ValidString(x) {
					t.Errorf("%q is not UTF-8", x)
				}
			}
		}
	})
}

// If a task is scheduled with the headers of another task, the old baggage is removed.
func TestSpans_StaleHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		var got map[string]string
		b.worker.Handle("h", func(_ context.Context, d durable.Delivery) error {
			got = d.Headers
			return nil
		})
		old := map[string]string{
			"traceparent": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01", "tracestate": "v=1", "baggage": "user=alice", "user": "7",
		}
		b.schedule(t, context.Background(), durable.Task{Key: "k", Handler: "h", Headers: old}, durable.After(time.Second))
		b.run(t, context.Background(), time.Minute)
		if got["traceparent"] == old["traceparent"] || got["tracestate"] != "" || got["baggage"] != "" || got["user"] != "7" {
			t.Errorf("the headers are %v", got)
		}
	})
}
