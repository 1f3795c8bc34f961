package jobs

import (
	"math/bits"
	"time"
)

// Cron is the [Schedule] of a cron spec: it gives each time at which the clock of a
// place shows what the fields say. Each field is a set of bits: bit 9 of Hour is nine
// o'clock, bit 1 of Dow is Monday. The fields are those of robfig/cron's SpecSchedule, so
// that what its parser has read can be converted:
//
//	spec, err := cron.ParseStandard("CRON_TZ=Europe/Berlin 30 2 * * 1-5")
//	...
//	job, err := jobs.Calendar(scheduler, jobs.Cron(*spec.(*cron.SpecSchedule)), save)
//
// # When the clock is changed
//
//   - A time that the clock skips is at the first moment after the gap. Where the clock
//     goes from 2:00 to 3:00, 2:30 is at 3:00.
//   - A time that the clock shows twice is once, the first time, if the spec has fixed
//     hours. It is both times if Hour is in steps: every hour of the day, or every second
//     and so on up to every sixth.
type Cron struct {
	// Dom is the day of the month and Dow the day of the week, from 0 for Sunday. Bit 63
	// says that the field is a star. If neither is, either of them is enough; else a day
	// must be in both.
	Second, Minute, Hour, Dom, Month, Dow uint64
	// Location is the place; nil and [time.Local], which robfig/cron sets where a spec names
	// none, mean that of the time that Next is given.
	Location *time.Location
}

const (
	star = 1 << 63
	// searched is how far Next looks ahead. The 29th of February may be eight years away.
	searched = 10 * 366 * 24 * 60 * 60
)

// Next returns the first time after t, to the second, or the zero time if none comes in
// ten years. It takes about a microsecond, and a tenth of a millisecond if there is none.
func (c Cron) Next(t time.Time) time.Time {
	place := c.Location
	if place == nil || place == time.Local {
		place = t.Location()
	}
	// All below is in seconds. A local time is what a clock in UTC shows then: the moment
	// plus the offset.
	now := t.Unix()
	limit := now + searched
	begin, end, offset := period(now, place)
	low := now + 1 + offset // the first local time that counts
	twice := c.inSteps()
	if !twice && begin != 0 {
		// Up to there the clock had come before it was set back.
		_, _, before := period(begin-1, place)
		low = max(low, begin+before)
	}
	// A period with one offset after the other.
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
		_, end, offset = period(change, place)
		if _, skipped := c.find(max(low, change+before), change+offset); skipped {
			return time.Unix(change, 0).In(t.Location())
		}
		if low = max(low, change+before, change+offset); twice {
			low = change + offset
		}
	}
}

// period returns a time around at in which a place has one offset, and that; 0 is never.
func period(at int64, place *time.Location) (begin, end, offset int64) {
	t := time.Unix(at, 0).In(place)
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

// find returns the first local time of the spec from one on and before another.
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
			if s, ok := c.ofDay(hour, minute, second); ok {
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

// ofDay returns the first second of a day that is in the spec, from a time of day on.
func (c *Cron) ofDay(hour, minute, second int) (s int64, ok bool) {
	for {
		h := first(c.Hour, hour)
		if h > 23 {
			return 0, false
		}
		if h > hour {
			minute, second = 0, 0
		}
		m := first(c.Minute, minute)
		if m > minute {
			second = 0
		}
		s := first(c.Second, second)
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

// first returns the first element of a set from one on, or 63 or 64 if there is none.
func first(set uint64, from int) int { return bits.TrailingZeros64(set >> from << from) }

// inSteps reports whether Hour is in steps.
func (c *Cron) inSteps() bool {
	hours := c.Hour &^ star
	begin := bits.TrailingZeros64(hours)
	step := first(hours, begin+1) - begin
	if step > 6 || begin >= step {
		return false
	}
	var all uint64
	for h := begin; h < 24; h += step {
		all |= 1 << h
	}
	return hours == all
}
