// Uses has a call site of each use, but for requests: package net/http takes long to
// type-check.
package main

import (
	"net"
	"time"
)

type session struct{ t *time.Timer }

func serve(c net.Conn) {
	time.AfterFunc(time.Second, func() { c.Close() }) // want `\(each request or connection\)`
}

func retry() {
	for {
		time.AfterFunc(time.Second, retry) // want `\(each round of a loop\)`
	}
}

func (s *session) start() {
	s.t = time.AfterFunc(time.Second, func() {}) // want `\(each object\)`
}

func main() {
	time.AfterFunc(time.Second, retry) // want `\(once\)`
	byID := make(map[int]*time.Timer)
	byID[1] = time.AfterFunc(time.Second, retry) // want `\(each object\)`
}

func other() {
	time.AfterFunc(time.Second, retry) // want `\(each call\)`
}
