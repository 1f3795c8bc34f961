package lengths

import "time"

func variable() int {
	t := time.NewTimer(1) // want `time.NewTimer stays: len or cap of a channel that may be its own`
	t.Stop()
	c := t.C
	return len(c)
}

func parameter() int {
	t := time.NewTimer(1) // want `stays: len or cap of a channel`
	t.Stop()
	return lens(t.C)
}

func lens(c <-chan time.Time) int { return len(c) }

type keeper struct{ c <-chan time.Time }

func field() int {
	t := time.NewTicker(1) // want `stays: len or cap of a channel`
	defer t.Stop()
	k := keeper{c: (t.C)}
	return cap(k.c)
}

type embedded struct{ *time.Timer }

func promoted() int {
	e := embedded{time.NewTimer(1)} // want `stays: len or cap of a channel that may be its own: always 0 in package time, but not in package timer`
	e.Stop()
	return len(e.C)
}

// A channel that is only received from gets nowhere.
func received() {
	t := time.NewTimer(1) // want `stays: len or cap of a channel that may be its own: always 0 in package time, but not in package timer`
	t.Stop()
	select {
	case <-t.C:
	case now, ok := <-t.C:
		_, _ = now, ok
	default:
	}
	for range t.C {
	}
	if t.C != nil {
		t.C = nil
	}
}
