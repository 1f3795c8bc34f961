package defined

import "time"

type (
	later  later0
	later0 map[string]*time.Timer
)

func (l later) add(k string) {
	l[k] = time.AfterFunc(1, func() {}) // want `can be timer.AfterFunc`
}

func (l later) stop(k string) { l[k].Stop() }

type (
	kept   kept0
	kept0  []*time.Timer
	Public struct{ Kept kept0 }
)

func (k kept) add() kept {
	return append(k, time.NewTimer(1)) // want `stays: Kept is exported: another package may use it`
}
