package untangle

import "time"

// What is returned, handed on and captured has one type.
func start(d time.Duration) (t *time.Timer, err error) {
	t = time.NewTimer(d) // want `can be`
	return t, nil
}

func chain(d time.Duration) (*time.Timer, error) { return start(d) }

func stop(t *time.Timer) bool { return t != nil && t.Stop() }

func all() {
	t, err := chain(1)
	if err == nil {
		func() { stop(t) }()
	}
	defer stop(t)
	switch t {
	case nil:
	}
	go func(ts ...*time.Timer) {
		for i := range ts {
			stop(ts[i])
		}
	}(t, nil)
	var sink struct{ t *time.Timer }
	sink.t = t
	_ = sink
}
