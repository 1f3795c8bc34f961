// Package generictypes has the methods of generic types ask for types.
package generictypes

import "time"

type box[T any] struct{ v any }

func (b box[T]) get() T { return b.v.(T) }

type ticker = *time.Ticker

func use() bool {
	var b box[*time.Timer]
	b.v = time.AfterFunc(1, nil)        // want `stays: it becomes a value of an interface type`
	c := box[ticker]{time.NewTicker(1)} // want `stays: it becomes a value of an interface type`
	defer c.get().Stop()
	return b.get().Stop()
}
