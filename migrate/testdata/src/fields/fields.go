package fields

import (
	"fmt"
	"net"
	"time"
)

type conn struct {
	net.Conn
	idle   *time.Timer // closes it
	beat   *time.Ticker
	others []*time.Timer
	byName map[string]*time.Timer
	queue  chan *time.Timer
	nested struct {
		t *time.Timer
	}
	pair [2]*time.Timer `json:"-"`
}

func (c *conn) start(d time.Duration) {
	c.idle = time.AfterFunc(d, func() { c.Close() })      // want `time.AfterFunc can be timer.AfterFunc \(each object\)`
	c.beat = time.NewTicker(d)                            // want `can be`
	c.others = append(c.others, c.idle, time.NewTimer(d)) // want `can be`
	c.byName["a"] = time.NewTimer(d)                      // want `can be timer.NewTimer \(each object\)`
	c.queue <- time.NewTimer(d)                           // want `can be`
	c.nested.t = time.NewTimer(d)                         // want `can be`
	c.pair[0] = <-c.queue
	c.pair[1], c.idle = c.nested.t, c.byName["a"]
}

func (c *conn) stop() {
	if c.idle != nil {
		c.idle.Stop()
	}
	c.beat.Stop()
	for _, t := range c.others {
		t.Stop()
	}
	if t, ok := c.byName["a"]; ok && t == c.idle {
		delete(c.byName, "a")
	}
	for _, t := range c.pair {
		t.Reset(1)
	}
	c.pair[0].Stop()
	fmt.Println(len(c.others))
}

// One use that cannot keeps all that the field gets from becoming package timer's.
type mixed struct {
	t    *time.Timer
	free *time.Timer
}

func (m *mixed) start(d time.Duration) {
	m.t = time.NewTimer(d)             // want `time.NewTimer stays: len of its channel`
	m.free = time.AfterFunc(d, m.stop) // want `can be`
}

func (m *mixed) stop() {
	m.t.Stop()
	fmt.Println(len(m.t.C))
}

// Embedded, the field's name stays.
type embedded struct {
	*time.Timer
}

func newEmbedded(d time.Duration) *embedded {
	return &embedded{time.NewTimer(d)} // want `stays: embedded`
}

func (e *embedded) end() bool { return e.Stop() && e.Timer.Reset(1) && (<-e.C).IsZero() }

var table = []struct {
	name string
	make func(time.Duration) *time.Timer
}{
	{"timer", time.NewTimer}, // want `can be`
	{"func", func(d time.Duration) *time.Timer { return time.AfterFunc(d, nil) }}, // want `can be`
}

func runTable() {
	for _, row := range table {
		row.make(1).Stop()
	}
}

type entry struct{ t *time.Timer }

type cache struct{ entries map[string]*entry }

func (c *cache) put(k string) {
	c.entries[k] = &entry{t: time.AfterFunc(1, func() { delete(c.entries, k) })} // want `can be timer.AfterFunc \(each object\)`
}
