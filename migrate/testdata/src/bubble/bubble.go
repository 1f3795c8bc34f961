package bubble

import (
	"context"
	"time"
)

func work() {
	_, cancel := context.WithTimeout(context.Background(), time.Second) // want `context.WithTimeout is left: a test may run it inside a testing/synctest bubble`
	cancel()
	t := time.NewTimer(time.Second) // want `can be`
	t.Stop()
}
