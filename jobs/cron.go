package jobs

import (
	"math/bits"
	"time"
)

// Cron is the [Schedule] of a cron spec. Its times are those at which a clock in
// Location matches all fields. The fields are those of robfig/cron's SpecSchedule, so
// the result of its parser can be converted:
//
//	spec, err := cron.ParseStandard("CRON_TZ=Europe/Berlin 30 2 * * 1-5")
//	...
//	job, err := jobs.Calendar(scheduler, jobs.Cron(*spec.(*cron.SpecSchedule)), save)
//
// # Daylight saving time
//
//   - If the clock goes from 2:00 forward to 3:00, an occurrence at 2:30 comes at 3:00.
//   - If the clock goes from 3:00 back to 2:00, an occurrence at 2:30 comes once, the
//     first time. With hours in steps of one to six, such as */2, it comes both
//     times.
type Cron struct {
	// Each field is a set of bits: bit 9 of Hour is nine o'clock. Dom is the day of the
	// month, Dow the day of the week, from 0 for Sunday. Bit 63 stands for a star. If
	// Dom or Dow is a star, a day must be in both. If neither is, it must be in one of
	// them.
	Second, Minute, Hour, Dom, Month, Dow uint64
	// Location is the time zone. If it is nil or [time.Local], Next uses the zone of
	// its argument.
	Location *time.Location
}

const (
	starBit = 1 << 63
	// searchLimit is how far ahead Next searches, in seconds. The 29th of February may
	// be eight years away.
	searchLimit = 10 * 366 * 24 * 60 * 60
)

// Next returns the first matching time after t, in whole seconds. It returns the zero
// time if there is none in ten years.
func (c Cron) Next(t time.Time) time.Time {
	loc := c.Location
	if loc == nil || loc == time.Local {
		loc = t.Location()
	}
	// All values below are in seconds. A local time is the Unix time plus the zone's
	// offset.
	now := t.Unix()
	limit := now + searchLimit
	begin, end, offset := offsetPeriod(now, loc)
	earliest := now + 1 + offset  // the first local time that may match
	matchTwice := c.hasHourStep() // match both times if the clock shows a time twice
	if !matchTwice && begin != 0 {
		// Skip the local times that the clock had already shown before it was set back.
		_, _, offsetBefore := offsetPeriod(begin-1, loc)
		earliest = max(earliest, begin+offsetBefore)
	}
	// Each iteration searches a period in which the zone's offset is constant.
	for {
		until := limit
		if end != 0 {
			until = min(limit, end)
		}
		if local, ok := c.find(earliest, until+offset); ok {
			return time.Unix(local-offset, 0).In(t.Location())
		}
		if until == limit {
			return time.Time{}
		}
		change, offsetBefore := end, offset
		_, end, offset = offsetPeriod(change, loc)
		if _, skipped := c.find(max(earliest, change+offsetBefore), change+offset); skipped {
			return time.Unix(change, 0).In(t.Location())
		}
		if earliest = max(earliest, change+offsetBefore, change+offset); matchTwice {
			earliest = change + offset
		}
	}
}

// offsetPeriod returns the zone's offset at a Unix time, and the begin and end of the
// period with this offset. 0 means that there is no begin or end.
func offsetPeriod(unix int64, loc *time.Location) (begin, end, offset int64) {
	t := time.Unix(unix, 0).In(loc)
	_, seconds := t.Zone()
	zoneBegin, zoneEnd := t.ZoneBounds()
	if !zoneBegin.IsZero() {
		begin = zoneBegin.Unix()
	}
	if !zoneEnd.IsZero() {
		end = zoneEnd.Unix()
	}
	if end != 0 && end <= unix {
		end = unix + 60*60 // package time has been seen to end a leap year a day too early
	}
	return begin, end, int64(seconds)
}

// find returns the first matching local time at or after from and before until.
func (c *Cron) find(from, until int64) (local int64, ok bool) {
	for from < until {
		t := time.Unix(from, 0).UTC()
		year, month, _ := t.Date()
		if c.Month>>month&1 == 0 {
			from = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC).Unix()
			continue
		}
		hour, minute, second := t.Clock()
		midnight := from - int64(hour*60*60+minute*60+second)
		if c.matchesDay(t) {
			if s, ok := c.firstOfDay(hour, minute, second); ok {
				return midnight + s, midnight+s < until
			}
		}
		from = midnight + 24*60*60
	}
	return 0, false
}

func (c *Cron) matchesDay(t time.Time) bool {
	inMonth, inWeek := c.Dom>>t.Day()&1 == 1, c.Dow>>t.Weekday()&1 == 1
	if c.Dom&starBit == 0 && c.Dow&starBit == 0 {
		return inMonth || inWeek
	}
	return inMonth && inWeek
}

// firstOfDay returns the first matching second of a day, at or after the given time of day.
func (c *Cron) firstOfDay(hour, minute, second int) (s int64, ok bool) {
	for {
		h := firstAtLeast(c.Hour, hour)
		if h > 23 {
			return 0, false
		}
		if h > hour {
			minute, second = 0, 0
		}
		m := firstAtLeast(c.Minute, minute)
		if m > minute {
			second = 0
		}
		s := firstAtLeast(c.Second, second)
		switch {
		case m > 59:
			hour, minute, second = h+1, 0, 0
		case s > 59:
			hour, minute, second = h, m+1, 0
		default:
			return int64(h*60*60 + m*60 + s), true
		}
	}
}

// firstAtLeast returns the smallest element of set that is at least from. If there is
// none, it returns 63 or 64.
func firstAtLeast(set uint64, from int) int { return bits.TrailingZeros64(set >> from << from) }

// hasHourStep reports whether Hour has a step of at most six hours: every hour of the
// day, every second hour, and so on.
func (c *Cron) hasHourStep() bool {
	hours := c.Hour &^ starBit
	firstHour := bits.TrailingZeros64(hours)
	step := firstAtLeast(hours, firstHour+1) - firstHour
	if step > 6 || firstHour >= step {
		return false
	}
	var expected uint64
	for h := firstHour; h < 24; h += step {
		expected |= 1 << h
	}
	return hours == expected
}
