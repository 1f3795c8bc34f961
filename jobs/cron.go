package jobs

import (
	"math/bits"
	"time"
)

// Cron is the [Schedule] of a cron spec: see [ParseCron]. Its times are those at which a
// clock in Location matches all fields. The fields are those of robfig/cron's
// SpecSchedule, so that the result of its parser can be converted.
//
// # Daylight saving time
//
// Next does as Debian's cron. A spec whose minute or hour begins with a star, such as
// "30 * * * *" or "*/10 0-6 * * *", follows the clock: it matches whenever the clock shows
// such a time, also the second time, and nothing else. All others name fixed times:
//
//   - If the clock goes from 2:00 forward to 3:00, an occurrence at 2:30 comes at 3:00.
//   - If the clock goes from 3:00 back to 2:00, an occurrence at 2:30 comes once, the
//     first time.
type Cron struct {
	// Each field is a set of bits: bit 9 of Hour is nine o'clock. Dom is the day of the
	// month, and its bit 0 the last day; Dow is the day of the week, from 0 for Sunday. Bit
	// 63 says that the field begins with a star. If one of Dom and Dow has bit 63, a day
	// must be in both. Otherwise one is enough.
	Second, Minute, Hour, Dom, Month, Dow uint64
	// Location is the time zone. If it is nil or [time.Local], Next uses the zone of
	// its argument.
	Location *time.Location
}

const (
	starBit    = 1 << 63
	lastDayBit = 1 // of Dom
	// maxSearchSeconds is how far ahead Next searches. The 29th of February falls on the
	// same day of the week after 40 years at the latest.
	maxSearchSeconds = 41 * 366 * 24 * 60 * 60
)

// Next returns the first matching time after t, in whole seconds. It returns the zero
// time if there is none in 41 years.
func (c Cron) Next(t time.Time) time.Time {
	loc := c.Location
	if loc == nil || loc == time.Local {
		loc = t.Location()
	}
	// All values below are in seconds. A local time is the Unix time plus the zone's
	// offset.
	now := t.Unix()
	searchEnd := now + maxSearchSeconds
	begin, end, offset := offsetPeriod(now, loc)
	searchStart := now + 1 + offset // the first local time that may match
	followsClock := (c.Minute|c.Hour)&starBit != 0
	if !followsClock && begin != 0 {
		// Skip the local times that the clock had already shown before it was set back.
		_, _, offsetBefore := offsetPeriod(begin-1, loc)
		searchStart = max(searchStart, begin+offsetBefore)
	}
	// Each iteration searches a period in which the zone's offset is constant.
	for {
		periodEnd := searchEnd
		if end != 0 {
			periodEnd = min(searchEnd, end)
		}
		if local, ok := c.findLocalTime(searchStart, periodEnd+offset); ok {
			return time.Unix(local-offset, 0).In(t.Location())
		}
		if periodEnd == searchEnd {
			return time.Time{}
		}
		change, offsetBefore := end, offset
		_, end, offset = offsetPeriod(change, loc)
		if followsClock {
			searchStart = change + offset
			continue
		}
		if _, skipped := c.findLocalTime(max(searchStart, change+offsetBefore), change+offset); skipped {
			return time.Unix(change, 0).In(t.Location())
		}
		searchStart = max(searchStart, change+offsetBefore, change+offset)
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

// findLocalTime returns the first matching local time t with from <= t < until.
func (c *Cron) findLocalTime(from, until int64) (local int64, ok bool) {
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
			if s, ok := c.firstMatchOfDay(hour, minute, second); ok {
				return midnight + s, midnight+s < until
			}
		}
		from = midnight + 24*60*60
	}
	return 0, false
}

func (c *Cron) matchesDay(t time.Time) bool {
	inMonth, inWeek := c.Dom>>t.Day()&1 == 1, c.Dow>>t.Weekday()&1 == 1
	if c.Dom&lastDayBit != 0 && t.AddDate(0, 0, 1).Day() == 1 {
		inMonth = true
	}
	if c.Dom&starBit == 0 && c.Dow&starBit == 0 {
		return inMonth || inWeek
	}
	return inMonth && inWeek
}

// firstMatchOfDay returns a day's first match at or after a time of day, in seconds.
func (c *Cron) firstMatchOfDay(hour, minute, second int) (s int64, ok bool) {
	for {
		h := firstElementFrom(c.Hour, hour)
		if h > 23 {
			return 0, false
		}
		if h > hour {
			minute, second = 0, 0
		}
		m := firstElementFrom(c.Minute, minute)
		if m > minute {
			second = 0
		}
		s := firstElementFrom(c.Second, second)
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

// firstElementFrom returns the smallest element of set that is at least from. If there
// is none, it returns 63 or 64.
func firstElementFrom(set uint64, from int) int { return bits.TrailingZeros64(set >> from << from) }
