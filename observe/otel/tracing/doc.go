// Package tracing makes OpenTelemetry spans for durable tasks: one span when a task is
// scheduled, and one for each attempt. The span of an attempt links to the first span,
// even if months, restarts or other processes lie between them.
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
//     the span in the call's context. A batch has one span, called "send" if its tasks have
//     several handlers.
//   - "process HANDLER", of kind consumer, is an attempt: one call of the handler, whose
//     context contains the span. The span starts a new trace with a link to the send span,
//     because an attempt may come long after it, and a repeating task never ends. [WithParent]
//     makes the span a child instead.
//
// The attributes are messaging.system, which is "tickless", messaging.operation.name
// and .type, messaging.destination.name, messaging.message.id, which is the task's key,
// messaging.message.body.size, messaging.batch.message_count, error.type, and these:
//
//   - tickless.outcome, of a send span for one task: "created", "replaced", "kept" or
//     "following", as in [durable.Outcome].
//   - tickless.attempt, tickless.max_attempts and tickless.due, of a process span, as in
//     [durable.Delivery]. The time is in RFC 3339, in UTC.
//   - tickless.end, of a process span, is how the attempt ended, by the handler's result:
//     "done", "retry", "dead", "hand_back", or "overtaken" for a failure after the task
//     was cancelled. The span ends before the report reaches the store. So a failed
//     attempt may have "retry" or "dead" although its task was scheduled again or
//     cancelled, or its lease was lost, and there is neither. [durable.HandlerStats]
//     counts these attempts as Overtaken and Lost.
//
// If a handler returns an error, the span's status is Error with the error's text, and
// error.type is the error's Go type. Handing back is not an error, and neither is the
// context's error after the task was cancelled. If the handler panics, the status is
// "panic: " with the value, error.type is "panic", and an event "exception" has the
// stack. If the handler ends its goroutine, "goexit" takes the place of "panic".
//
// A task that ends without a call of its handler, such as a missed one, has no process
// span. Cancel, Reschedule and an empty ScheduleBatch have no span.
//
// # How the context travels
//
// The context is in headers of the task, such as "traceparent", which take some 60 to
// 600 bytes of its 64 kB. Handlers see these headers. The attempts of a task without
// them have no link.
//
// # Concurrency
//
// Any number of Clients and Workers may use the same options.
package tracing
