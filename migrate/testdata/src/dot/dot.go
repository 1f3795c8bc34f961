// Package dot imports package time with a dot. The analysis does not see such calls.
package dot

import (
	"time"
	. "time"
)

func start(d Duration) *Timer {
	if d > 0 {
		return AfterFunc(d, nil)
	}
	return time.AfterFunc(d, nil) // want `time.AfterFunc stays: it would not compile`
}
