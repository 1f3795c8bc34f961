package bubble

// A Home remembers the bubble in which it was made. The zero Home is none.
type Home struct{ c chan struct{} }

// Here returns the bubble of the calling goroutine, or none.
func Here() Home {
	if !Inside() {
		return Home{}
	}
	return Home{make(chan struct{})}
}

// Enter ends the process unless the caller is in the bubble, as use of a bubble's timers
// of package time does: with a fatal error of the runtime, "receive on synctest channel
// from outside bubble". It does nothing if there is none.
func (h Home) Enter() {
	select {
	case <-h.c: // the runtime looks at the bubble first
	default:
	}
}

// Any reports whether there is a bubble.
func (h Home) Any() bool { return h.c != nil }
