package imports

import "time"

func gone() {
	time.AfterFunc(1, gone) // want `can be`
}
