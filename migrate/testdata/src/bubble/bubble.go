package bubble

import (
	"context"
	"sync"
	"time"
)

func work() {
	_, cancel := context.WithTimeout(context.Background(), time.Second) // want `can be deadline.WithTimeout`
	cancel()
	t := time.NewTimer(time.Second) // want `can be`
	t.Stop()
}

var global = time.NewTimer(time.Second) // want `time.NewTimer stays: the package's variable global holds it, and a test may use it inside and outside a testing/synctest bubble`

func stopGlobal() { global.Stop() }

var hook = time.AfterFunc // want `can be`

type conn struct{ idle *time.Timer }

type server struct{ conns map[string]*conn }

var theServer = &server{}

func (s *server) add(c *conn) {
	c.idle = time.AfterFunc(time.Second, func() {}) // want `time.AfterFunc stays: the package's variable theServer holds it`
	s.conns["x"] = c
}

var pool = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour) // want `time.NewTimer stays: a sync.Pool holds it`
	t.Stop()
	return t
}}

type entry struct{ t *time.Timer }

func (e *entry) start() { e.t = time.AfterFunc(time.Hour, func() {}) } // want `time.AfterFunc stays: a sync.Pool holds it`

func put(p *sync.Pool, e *entry) { p.Put(e) }

type mine struct{ t *time.Timer }

func (m *mine) start() { m.t = time.AfterFunc(time.Hour, func() {}) } // want `can be`
