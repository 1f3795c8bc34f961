// Package calls has each function that starts a timer, called and as a value.
package calls

import "time"

func each(d time.Duration, f func(), c <-chan int) {
	time.AfterFunc(d, f) // want `time.AfterFunc can be timer.AfterFunc \(each call\)`

	t := time.NewTimer(d) // want `time.NewTimer can be timer.NewTimer`
	defer t.Stop()
	select {
	case <-t.C:
	case <-c:
	}
	if !t.Reset(-1) {
		<-t.C
	}

	k := time.NewTicker(d) // want `time.NewTicker can be timer.NewTicker`
	<-k.C
	k.Reset(2 * d)
	k.Stop()

	time.Sleep(d)                     // want `stays: not worth it`
	<-time.NewTimer(d).C              // want `time.NewTimer stays: never stopped`
	stop := time.AfterFunc(d, f).Stop // want `time.AfterFunc can be timer.AfterFunc`
	stop()
	stopped := (*time.Timer).Stop
	stopped(t)
}

var sleep = time.Sleep // want `stays: not worth it`

// What nobody can stop stays package time's: there it is garbage.
func waits(d time.Duration, c <-chan int) {
	<-time.After(d) // want `time.After stays: timer.After is time.After, which cannot be stopped`
	<-time.Tick(d)  // want `time.Tick stays: timer.Tick is time.Tick`
	for {
		select {
		case <-c:
		case <-time.After(d): // want `time.After stays: .*`
			return
		}
	}
}

var after = time.After // want `time.After stays: timer.After is time.After`
