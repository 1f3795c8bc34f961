package jobs

import (
	"math/bits"
	"time"
)

// Cron is the [Schedule] of a cron spec: its times are those at which a clock in Location
// matches all fields. Each field is a set of bits: bit 9 of Hour is nine o'clock, bit 1
// of Dow is Monday. The fields are those of robfig/cron's SpecSchedule, so the result of
// its parser can be converted:
//
//	spec, err := cron.ParseStandard("CRON_TZ=Europe/Berlin 30 2 * * 1-5")
//	...
//	job, err := jobs.Calendar(scheduler, jobs.Cron(*spec.(*cron.SpecSchedule)), save)
//
// # When the clock is changed
//
//   - A time that the clock skips is moved to the end of the gap. If the clock
//     goes from 2:00 to 3:00, 2:30 is at 3:00.
//   - A time that the clock shows twice occurs once, the first time, if the spec has fixed
//     hours. It occurs both times if Hour is in steps: every hour of the day, or every second
//     and so on up to every sixth.
type Cron struct {
	// Dom is the day of the month and Dow the day of the week, from 0 for Sunday. Bit 63
	// is set if the field is a star. If neither field is a star, a day must be in one of
	// them; otherwise it must be in both.
	Second, Minute, Hour, Dom, Month, Dow uint64
	// Location is the time zone. nil and [time.Local], which robfig/cron sets if a spec
	// names no zone, mean the zone of Next's argument.
	Location *time.Location
}

const (
	star = 1 << 63
	// searchLimit is how many seconds Next looks ahead. The 29th of February may be eight
	// years away.
	searchLimit = 10 * 366 * 24 * 60 * 60
)

// Next returns the first matching time after t, in whole seconds, or the zero time if
// there is none in ten years. It takes about a microsecond, and a tenth of a millisecond
// if there is none.
func (c Cron) Next(t time.Time) time.Time {
	loc := c.Location
	if loc == nil || loc == time.Local {
		loc = t.Location()
	}
	// All values below are in seconds. A local time is the moment plus the zone's offset.
	now := t.Unix()
	limit := now + searchLimit
	begin, end, offset := period(now, loc)
	low := now + 1 + offset // the first local time that may match
	twice := c.inSteps()
	if !twice && begin != 0 {
		// Skip the local times that the clock had already shown before it was set back.
		_, _, before := period(begin-1, loc)
		low = max(low, begin+before)
	}
	// Each pass handles one period in which the zone has one offset.
	for {
		until := limit
		if end != 0 {
			until = min(limit, end)
		}
		if local, ok := c.find(low, until+offset); ok {
			return time.Unix(local-offset, 0).In(t.Location())
		}
		if until == limit {
			return time.Time{}
		}
		change, before := end, offset
		_, end, offset = period(change, loc)
		if _, skipped := c.find(max(low, change+before), change+offset); skipped {
			return time.Unix(change, 0).In(t.Location())
		}
		if low = max(low, change+before, change+offset); twice {
			low = change + offset
		}
	}
}

// period returns the period around at in which the zone has one offset, and the offset. A
// begin or end of 0 means that the period is unbounded.
func period(at int64, loc *time.Location) (begin, end, offset int64) {
	t := time.Unix(at, 0).In(loc)
	_, seconds := t.Zone()
	from, to := t.ZoneBounds()
	if !from.IsZero() {
		begin = from.Unix()
	}
	if !to.IsZero() {
		end = to.Unix()
	}
	if end != 0 && end <= at {
		end = at + 60*60 // package time has been seen to end a leap year a day too early
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
		if c.hasDay(t) {
			if s, ok := c.firstOfDay(hour, minute, second); ok {
				return midnight + s, midnight+s < until
			}
		}
		from = midnight + 24*60*60
	}
	return 0, false
}

func (c *Cron) hasDay(t time.Time) bool {
	inMonth, inWeek := c.Dom>>t.Day()&1 == 1, c.Dow>>t.Weekday()&1 == 1
	if c.Dom&star == 0 && c.Dow&star == 0 {
		return inMonth || inWeek
	}
	return inMonth && inWeek
}

// firstOfDay returns the first matching second of a day, at or after the given time of day.
func (c *Cron) firstOfDay(hour, minute, second int) (s int64, ok bool) {
	for {
		h := firstFrom(c.Hour, hour)
		if h > 23 {
			return 0, false
		}
		if h > hour {
			minute, second = 0, 0
		}
		m := firstFrom(c.Minute, minute)
		if m > minute {
			second = 0
		}
		s := firstFrom(c.Second, second)
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

// firstFrom returns the first element of set that is at least from, or 63 or 64 if there is
// none.
func firstFrom(set uint64, from int) int { return bits.TrailingZeros64(set >> from << from) }

// inSteps reports whether Hour is in equal steps of at most six hours.
func (c *Cron) inSteps() bool {
	hours := c.Hour &^ star
	begin := bits.TrailingZeros64(hours)
	step := firstFrom(hours, begin+1) - begin
	if step > 6 || begin >= step {
		return false
	}
	var all uint64
	for h := begin; h < 24; h += step {
		all |= 1 << h
	}
	return hours == all
}
