package dot

import . "time"

func start(d Duration) *Timer {
	return AfterFunc(d, nil) // want `time.AfterFunc stays: package time is imported with a dot`
}
