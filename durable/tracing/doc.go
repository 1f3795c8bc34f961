// Package tracing makes OpenTelemetry spans for durable tasks: a send span when a task is
// scheduled, and a process span for each attempt to run it. Each process span links to
// the send span, even months later or in another process.
//
// # Usage
//
//	client := durable.New(store, tracing.Client())
//	worker := durable.NewWorker(client, tracing.Worker())
//
// Both use the global TracerProvider and propagator by default. The global propagator
// does nothing until a program sets it:
//
//	otel.SetTextMapPropagator(propagation.TraceContext{})
//
// # Spans
//
// The spans follow OpenTelemetry's conventions for messaging: the task is the message,
// and its handler is the destination.
//
//   - "send HANDLER", of kind producer, is a call of Schedule or ScheduleBatch. A batch
//     has one span. Its name is "send" if the tasks have several handlers.
//   - "process HANDLER", of kind consumer, is a call of the handler, whose context
//     contains the span. The span starts a new trace: see [WithParent].
//
// A task that ends without a call of its handler has no process span. Cancel and
// Reschedule have no span.
//
// # Attributes
//
// Attributes that begin with "messaging." follow the conventions: messaging.system is
// "tickless", and messaging.message.id is the task's key. The other attributes:
//
//   - tickless.outcome, of a send span for one task, is as in [durable.Outcome]:
//     "created", "replaced", "kept" or "following".
//   - tickless.attempt, tickless.max_attempts and tickless.due, of a process span, are as
//     in [durable.Delivery]. The time is in RFC 3339, in UTC.
//   - tickless.end, of a process span, is the handler's result: "done", "retry", "dead",
//     "hand_back", or "overtaken" if the handler failed after the task was cancelled.
//
// The span ends before the Worker reports the result to the store. So the store may
// ignore a "retry" or "dead", for example because the task was cancelled meanwhile.
//
// # Errors
//
//   - If a handler returns an error, the span's status is Error with the error's text,
//     and error.type is the error's Go type.
//   - If a handler panics or ends its goroutine, error.type is "panic" or "goexit", and
//     an event "exception" has the stack.
//   - Handing a task back is not an error. After the task was cancelled, the context's
//     error is not one either.
//
// # How the context travels
//
// The context of the send span is in headers of the task, such as "traceparent". They
// take 60 to 600 bytes of the task's 64 kB. Handlers see these headers.
//
// # Concurrency
//
// Several Clients and Workers may share the same options.
package tracing
