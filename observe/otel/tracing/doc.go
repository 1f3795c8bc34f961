// Package tracing makes OpenTelemetry spans for durable tasks: a send span when a task is
// scheduled, and a process span for each attempt to run it. Each process span links to the
// send span, even months later or in another process.
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
//   - "send HANDLER", of kind producer, is a call of Schedule or ScheduleBatch. Its parent is
//     the span in the call's context. A batch has one span. Its name is "send" if the tasks
//     have several handlers.
//   - "process HANDLER", of kind consumer, is a call of the handler. The handler's context
//     contains the span. The span starts a new trace, because it may come long after the
//     send span. [WithParent] makes it a child of the send span instead.
//
// A task that ends without a call of its handler, such as a missed task, has no process
// span. Cancel, Reschedule and an empty ScheduleBatch have no span.
//
// # Attributes
//
//   - messaging.system is "tickless", messaging.destination.name is the handler, and
//     messaging.message.id is the task's key.
//   - messaging.operation.name, messaging.operation.type, messaging.message.body.size,
//     messaging.batch.message_count and error.type follow the conventions.
//   - tickless.outcome, of a send span for one task, is "created", "replaced", "kept" or
//     "following", as in [durable.Outcome].
//   - tickless.attempt, tickless.max_attempts and tickless.due, of a process span, are as in
//     [durable.Delivery]. The time is in RFC 3339, in UTC.
//   - tickless.end, of a process span, is the handler's result: "done", "retry", "dead",
//     "hand_back", or "overtaken" if the handler failed after the task was cancelled.
//
// The span ends before the Worker reports the result to the store. So tickless.end may be
// "retry" or "dead" although the task is not retried or dead. This happens if the task was
// scheduled again or cancelled meanwhile, or if its lease was lost. [durable.HandlerStats]
// counts such attempts as Overtaken or Lost.
//
// # Errors
//
//   - If a handler returns an error, the span's status is Error with the error's text, and
//     error.type is the error's Go type.
//   - If a handler panics, the status is "panic: " with the value, error.type is "panic",
//     and an event "exception" has the stack.
//   - If a handler ends its goroutine, error.type is "goexit", and the same event has the
//     stack.
//   - To hand a task back is not an error. After the task was cancelled, the error of the
//     handler's context is not an error.
//
// # How the context travels
//
// The context of the send span is in headers of the task, such as "traceparent". They take
// 60 to 600 bytes of the task's 64 kB. Handlers see these headers. If a task has no such
// headers, its process spans have no link.
//
// # Concurrency
//
// Several Clients and Workers may share the same options.
package tracing
