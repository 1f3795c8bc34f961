//go:build go1.26

package byvalue

import "time"

func newValue() **time.Timer {
	t := time.NewTimer(1) // want `can be`
	p := new(t)
	(*p).Stop()
	return p
}
