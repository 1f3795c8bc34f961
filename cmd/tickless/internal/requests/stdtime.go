package requests

import (
	"time"

	"go.uber.org/atomic"
)

// NewTime returns a backend for n requests that uses time.AfterFunc.
func NewTime(n int) Backend {
	return &stdTime{timers: make([]atomic.Pointer[time.Timer], n)}
}

// stdTime drops a timer when it fires or is stopped, as a program that saves memory
// would. The pointers are atomic because a callback may drop its timer while Close
// reads the pointer.
type stdTime struct {
	timers []atomic.Pointer[time.Timer]
}

func (*stdTime) Name() string { return "time.AfterFunc" }

func (*stdTime) Open() {}

func (b *stdTime) Start(i int, d time.Duration, f func()) error {
	b.timers[i].Store(time.AfterFunc(d, f))
	return nil
}

func (b *stdTime) Stop(i int) bool {
	t := b.timers[i].Load()
	if t == nil {
		return false
	}
	b.timers[i].Store(nil)
	return t.Stop()
}

func (b *stdTime) Fired(i int) { b.timers[i].Store(nil) }

func (b *stdTime) Close() (int, error) {
	pending := 0
	for i := range b.timers {
		if b.Stop(i) {
			pending++
		}
	}
	return pending, nil
}
