package unseenshadow

import "time"

func start(d time.Duration) {
	time.AfterFunc(d, nil) // want `can be`
}
