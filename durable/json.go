package durable

import (
	"context"
	"encoding/json"
	"fmt"
)

// HandleJSON is like [Worker.Handle], but decodes the task's body from JSON into a T.
// An empty body becomes the zero T. If the body cannot be decoded, the attempt has failed
// and is retried, because a worker of a newer version may know the body's form.
func HandleJSON[T any](w *Worker, name string, h func(ctx context.Context, d Delivery, v T) error, opts ...HandlerOption) {
	if h == nil {
		panic("durable: HandleJSON: nil function")
	}
	w.Handle(name, func(ctx context.Context, d Delivery) error {
		var v T
		if len(d.Body) > 0 {
			if err := json.Unmarshal(d.Body, &v); err != nil {
				return fmt.Errorf("durable: the body is not the JSON of a %T: %w", v, err)
			}
		}
		return h(ctx, d, v)
	}, opts...)
}
