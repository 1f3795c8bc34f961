package quartz

import (
	"time"

	"github.com/coder/quartz"
)

// These are quartz's own.
type (
	AdvanceWaiter = quartz.AdvanceWaiter
	Call          = quartz.Call
	Logger        = quartz.Logger
	TestingT      = quartz.TestingT
	Trap          = quartz.Trap
	Trapper       = quartz.Trapper
)

// ErrTrapClosed is quartz's own.
var ErrTrapClosed = quartz.ErrTrapClosed

// A Mock is quartz's Mock, as a Clock of this package. Make one with NewMock.
type Mock struct{ *quartz.Mock }

var _ Clock = (*Mock)(nil)

// NewMock is quartz.NewMock.
func NewMock(tb TestingT) *Mock { return &Mock{quartz.NewMock(tb)} }

// WithLogger replaces the default testing logger with a custom one.
func (m *Mock) WithLogger(l Logger) *Mock {
	m.Mock.WithLogger(l)
	return m
}

// NewTimer is the Mock's.
func (m *Mock) NewTimer(d time.Duration, tags ...string) *Timer {
	t := m.Mock.NewTimer(d, tags...)
	return &Timer{C: t.C, m: t}
}

// AfterFunc is the Mock's.
func (m *Mock) AfterFunc(d time.Duration, f func(), tags ...string) *Timer {
	t := m.Mock.AfterFunc(d, f, tags...)
	return &Timer{C: t.C, m: t}
}

// NewTicker is the Mock's.
func (m *Mock) NewTicker(d time.Duration, tags ...string) *Ticker {
	t := m.Mock.NewTicker(d, tags...)
	return &Ticker{C: t.C, m: t}
}
