package idle_test

import "github.com/tickless/tickless/idle"

// leftover closes m and returns the things that were still watched.
func leftover[T any](m *idle.Monitor[T]) []T {
	m.Close()
	var vs []T
	for e := range m.TakeLeftover() {
		vs = append(vs, e.Value())
	}
	return vs
}

// openAfterClose closes cs and returns the connections that stay open.
func openAfterClose(cs *idle.Conns) []*idle.Conn {
	cs.Close()
	var conns []*idle.Conn
	for c := range cs.TakeLeftover() {
		conns = append(conns, c)
	}
	return conns
}
