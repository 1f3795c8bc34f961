// Package promoted has members that are promoted through embedded generic types.
package promoted

import "time"

type box[T any] struct{ v T }

func (b *box[T]) set(v T) { b.v = v }
func (b *box[T]) get() T  { return b.v }

type outer[T any] struct{ *box[T] }

type conn struct {
	box[*time.Timer]
}

func (c *conn) start() {
	c.v = time.NewTimer(1) // want `can be`
	c.get().Stop()
	c.set(time.AfterFunc(1, nil)) // want `can be`
}

type deep struct {
	outer[*time.Ticker]
}

func (d *deep) start() {
	d.v = time.NewTicker(1) // want `can be`
	d.v.Stop()
}

// Conn keeps what it promotes.
type Conn struct {
	Box[*time.Timer]
}

type Box[T any] struct{ V T }

func (c *Conn) start() {
	c.V = time.NewTimer(1) // want `stays: Box is exported: another package may use it`
	c.V.Stop()
}
