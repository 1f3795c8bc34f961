package channels

import "time"

func lengths() {
	t := time.NewTimer(1) // want `time.NewTimer stays: len of its channel is always 0 in package time, but not in package timer`
	t.Stop()
	_ = len(t.C)

	k := time.NewTicker(1) // want `time.NewTicker stays: cap of its channel`
	k.Stop()
	_ = cap(k.C)
}

func values() <-chan time.Time {
	t := time.NewTimer(1) // want `can be`
	c := t.C
	t.Stop()
	t.C = nil
	return c
}
