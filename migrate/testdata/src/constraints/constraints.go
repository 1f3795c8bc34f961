package constraints

import "time"

type num[T ~struct{ t *time.Timer }] struct{ v T }

type arg struct{ t *time.Timer }

func typed() {
	x := num[arg]{arg{time.AfterFunc(1, nil)}} // want `time.AfterFunc can be timer.AfterFunc`
	_ = x
}

func one[T interface{ ~struct{ t *time.Timer } }](T) {}

type inferred struct{ t *time.Timer }

func called() {
	one(inferred{time.AfterFunc(1, nil)}) // want `stays: it would not compile: in call to starts, T`
}

type either interface{ *time.Timer | *time.Ticker }

type holder[T either] struct{ v T }

func held() {
	h := holder[*time.Timer]{time.AfterFunc(1, nil)} // want `time.AfterFunc can be timer.AfterFunc`
	h.v.Stop()
}

type list []*time.Timer

func all[S ~[]*time.Timer](S) {}

func lists() {
	all(list{time.AfterFunc(1, nil)}) // want `time.AfterFunc can be timer.AfterFunc`
}

type free struct{ t *time.Timer }

type any[T interface{}] struct{ v T }

func freely() {
	x := any[free]{free{time.AfterFunc(1, nil)}} // want `can be`
	_ = x
}

type method struct{ t *time.Timer }

func (m method) M() *time.Timer { return m.t }

func asks[T interface{ M() *time.Timer }](x T) { x.M().Stop() }

type asking[T interface{ N() *time.Timer }] struct{ v T }

type other struct{}

func (other) N() *time.Timer { return time.AfterFunc(1, nil) } // want `can be`

func asked() {
	asks(method{time.AfterFunc(1, nil)}) // want `stays: it would not compile: in call to starts, T`
	_ = asking[other]{}
}
