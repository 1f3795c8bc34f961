package abandoned

import "time"

func timers(d time.Duration, c chan int) {
	t := time.NewTimer(d) // want `time.NewTimer stays: never stopped: package time frees it`
	select {
	case <-t.C:
	case <-c:
	}
	select {
	case <-time.NewTimer(d).C: // want `stays: never stopped`
	case <-c:
	}
}

func tickers(d time.Duration) {
	for range time.NewTicker(d).C { // want `stays: never stopped`
	}
}

// What AfterFunc starts runs, stopped or not.
func funcs(d time.Duration) {
	time.AfterFunc(d, func() {}) // want `can be`
}
