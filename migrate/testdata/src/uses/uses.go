// Package uses has a call site of each use.
package main

import (
	"net"
	"net/http"
	"time"
)

type session struct{ t *time.Timer }

func handler(w http.ResponseWriter, r *http.Request) {
	defer time.AfterFunc(time.Second, func() {}).Stop() // want `\(each request\)`
}

func serve(c net.Conn) {
	time.AfterFunc(time.Second, func() { c.Close() }) // want `\(each connection\)`
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
	byID[1] = time.AfterFunc(time.Second, retry) // want `\(each key\)`
}

func other() {
	time.AfterFunc(time.Second, retry) // want `\(each call\)`
}
