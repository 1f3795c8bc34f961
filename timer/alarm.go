package timer

import "github.com/tickless/tickless/internal/alarm"

// AlarmStats are counts of the alarm that all Schedulers on the system's clock share.
type AlarmStats struct {
	// ByDescriptor, ByTimer and ByBackup count its rings: by a timerfd, which is exact and
	// is taken on Linux while rings are rare, by a timer of package time, and by another
	// that is set besides, for where that one's goroutine does not get to run.
	ByDescriptor, ByTimer, ByBackup uint64
	// NoDescriptor counts how often a timerfd was wanted and could not be had, which may be
	// several times for one ring: the process has as many files open as it may, or the
	// system has none.
	NoDescriptor uint64
}

// ReadAlarmStats returns the counts of the alarm since the process began.
func ReadAlarmStats() AlarmStats { return AlarmStats(alarm.Counts()) }
