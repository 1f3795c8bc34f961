package durable

import (
	"context"
	"encoding/json"
	"fmt"
)

// HandleJSON has the Worker run h for tasks whose Handler is name, as [Worker.Handle]
// does, with the task's body decoded from JSON into a T. An empty body is the zero T. A
// body that cannot be decoded makes the task a dead letter at once, as [NoRetry] does:
// requeue it when there is a worker that can.
func HandleJSON[T any](w *Worker, name string, h func(ctx context.Context, d Delivery, v T) error, opts ...HandlerOption) {
	if h == nil {
		panic("durable: HandleJSON with a nil function")
	}
	w.Handle(name, func(ctx context.Context, d Delivery) error {
		var v T
		if len(d.Body) > 0 {
			if err := json.Unmarshal(d.Body, &v); err != nil {
				return NoRetry(fmt.Errorf("durable: the body is not the JSON of a %T: %w", v, err))
			}
		}
		return h(ctx, d, v)
	}, opts...)
}
