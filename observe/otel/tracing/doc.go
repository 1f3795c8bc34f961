// Package tracing makes OpenTelemetry spans of durable tasks: one when a task is
// scheduled, and one for each attempt at it, which links to the first, whatever lies
// between them: months, a restart, another process.
//
// # Usage
//
//	client := durable.New(store, tracing.Client())
//	worker := durable.NewWorker(client, tracing.Worker())
//
// Both take the global TracerProvider and propagator, unless options say otherwise. The
// global propagator passes nothing on until it is set:
//
//	otel.SetTextMapPropagator(propagation.TraceContext{})
//
// # Spans
//
// They follow OpenTelemetry's conventions for messaging: the task is the message, and
// its handler the destination.
//
//   - "send HANDLER", of kind producer: a call of Schedule or ScheduleBatch. It belongs to
//     the span in the call's context. A batch has one span, which is called "send" if its
//     tasks have several handlers.
//   - "process HANDLER", of kind consumer: an attempt, that is a call of the handler. The
//     handler's context has it. It begins a trace of its own, with a link to the span of
//     Schedule, because an attempt may come long after it, and a repeating task has no end
//     of attempts. [WithParent] makes it a child instead.
//
// The attributes are messaging.system, which is "tickless", messaging.operation.name and
// .type, messaging.destination.name, messaging.message.id, which is the task's key,
// messaging.message.body.size, messaging.batch.message_count and error.type, and these:
//
//   - tickless.outcome, of a send span for one task: what has become of the task, as
//     [durable.Outcome] names it: "created", "replaced", "kept" or "following".
//   - tickless.attempt, tickless.max_attempts and tickless.due, of a process span, as in
//     [durable.Delivery]. The moment is in RFC 3339, in UTC.
//   - tickless.end, of a process span: what the handler's return asks for. It is "done",
//     "retry", "dead", "hand_back", or "overtaken" for a failure after the task was
//     cancelled. The span ends before the store has the report. If the store then says
//     that the task was scheduled again or cancelled meanwhile, or that the lease was lost,
//     there is neither a retry nor a dead letter: the Worker counts those attempts as
//     Overtaken and Lost in its [durable.HandlerStats].
//
// A handler that returns an error has a span whose status is Error with the error's text,
// and whose error.type is the error's Go type. Handing back is no error, and neither is
// the context's error after the task was cancelled. If the handler panics the status is
// "panic: " with the value, error.type is "panic", and the span has an event "exception"
// with the stack; one that ends its goroutine has "goexit" in place of "panic".
//
// A task that ends without a call of its handler, such as one that was missed, has no
// span; neither have Cancel and Reschedule, nor a ScheduleBatch of no tasks.
//
// # How the context gets there
//
// As headers of the task, such as "traceparent", which take some 60 to 600 bytes of its
// 64 kB. Handlers see them. A task that was scheduled without them has attempts without
// a link.
//
// # Concurrency
//
// Any number of Clients and Workers may use the same options.
package tracing
