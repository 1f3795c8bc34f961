package defined

import "time"

type (
	timers  map[string]*time.Timer
	list    []*time.Timer
	alias   = *time.Timer
	pending struct{ alias }
)

func (l list) stop() {
	for _, t := range l {
		t.Stop()
	}
}

func all(ts timers) {
	ts["a"] = time.NewTimer(1) // want `can be timer.NewTimer \(each object\)`
	for k, t := range ts {
		t.Stop()
		delete(ts, k)
	}
	l := list{time.NewTimer(1)} // want `can be`
	l = append(l, ts["b"])
	l.stop()
	var a alias = time.NewTimer(1) // want `stays: embedded`
	a.Stop()
	p := pending{a}
	p.Stop()
	m := map[string]list{"x": {time.NewTimer(1)}} // want `can be`
	m["x"].stop()
	pairs := [][]*time.Timer{{time.NewTimer(1)}} // want `can be`
	pairs[0][0].Stop()
}
