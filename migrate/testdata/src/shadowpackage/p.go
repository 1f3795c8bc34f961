package shadowpackage

import "time"

func start(d time.Duration) {
	time.AfterFunc(d, timer) // want `can be`
}
