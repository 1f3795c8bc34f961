package lengths

import "time"

func any[T interface{}](c <-chan T) int { return len(c) }

func generic() int {
	t := time.NewTimer(1) // want `stays: len or cap of a channel`
	t.Stop()
	return any(t.C)
}
