package hooks

import "time"

var (
	afterFunc = time.AfterFunc                                                // want `time.AfterFunc can be timer.AfterFunc`
	newTimer  = func(d time.Duration) *time.Timer { return time.NewTimer(d) } // want `can be`
	newTicker func(time.Duration) *time.Ticker
	sleep     func(time.Duration)
)

func init() {
	newTicker = time.NewTicker // want `can be`
	sleep = time.Sleep         // want `stays: not worth it`
}

type starter func(time.Duration, func()) *time.Timer

func (s starter) run() bool { return s(1, nil).Stop() }

var fromNamed starter = afterFunc

func use() {
	t := afterFunc(1, use)
	t.Stop()
	newTimer(1).Stop()
	newTicker(1).Stop()
	sleep(1)
	starter(time.AfterFunc).run() // want `can be`
}

// A hook that a test of another package sets is part of the API.
var NewTimer = time.NewTimer // want `stays: NewTimer is exported: another package may use it`

func useExported() { NewTimer(1).Stop() }
