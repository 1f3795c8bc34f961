package jobs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseCron parses a cron spec. zone is the name of a time zone, such as "Europe/Berlin",
// empty for UTC, or "Local" for the zone of Next's argument.
//
// A spec has five fields, or six if it begins with the seconds:
//
//	minute        0-59
//	hour          0-23
//	day of month  1-31, or L for the last day
//	month         1-12, or JAN-DEC
//	day of week   0-7, or SUN-SAT; 0 and 7 are Sunday
//
// A field is a list, separated by commas, of numbers, ranges such as 1-5, and stars. A
// range or star may have a step: "*/15", "10-20/2"; "5/10" stands for "5-59/10". If the
// day of the month and the day of the week both begin with something other than a star, a
// day must match one of them, otherwise both.
//
// Instead of the fields a spec may be @yearly, @annually, @monthly, @weekly, @daily,
// @midnight, @hourly, or "@every 1h30m", with at least a second, which returns an [Every].
// All others return a [Cron].
//
// The error says what is wrong. A spec that never matches, such as "0 0 30 2 *", and a zone
// with another spelling than in the zone database are errors too.
func ParseCron(spec, zone string) (Schedule, error) {
	location, err := loadZone(zone)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	s, err := parseSpec(spec)
	if err != nil {
		return nil, fmt.Errorf("jobs: the cron spec %.200q: %w", spec, err)
	}
	if c, ok := s.(Cron); ok {
		c.Location = location
		return c, nil
	}
	return s, nil
}

// Every is the [Schedule] of a constant period, such as "@every 1h30m".
type Every time.Duration

// Next returns t plus the period.
func (d Every) Next(t time.Time) time.Time { return t.Add(time.Duration(d)) }

var specByWord = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

func parseSpec(spec string) (Schedule, error) {
	if strings.Contains(spec, "TZ=") {
		return nil, errors.New("it names a zone, which is an argument of its own")
	}
	if len(spec) > 1000 {
		return nil, errors.New("it is longer than 1000 bytes")
	}
	words := strings.Fields(spec)
	if len(words) == 2 && strings.EqualFold(words[0], "@every") {
		d, err := time.ParseDuration(words[1])
		if err != nil || d < time.Second {
			return nil, fmt.Errorf("%q is not a duration of at least a second", words[1])
		}
		return Every(d), nil
	}
	if len(words) == 1 && strings.HasPrefix(spec, "@") {
		fields, ok := specByWord[strings.ToLower(words[0])]
		if !ok {
			return nil, errors.New("the word is not known")
		}
		words = strings.Fields(fields)
	}
	if len(words) == 5 {
		words = append([]string{"0"}, words...)
	}
	if len(words) != 6 {
		return nil, fmt.Errorf("it has %d fields, but must have 5, or 6 with seconds", len(words))
	}
	var c Cron
	for i, f := range []struct {
		bits *uint64
		cronField
	}{
		{&c.Second, cronField{name: "second", high: 59}},
		{&c.Minute, cronField{name: "minute", high: 59}},
		{&c.Hour, cronField{name: "hour", high: 23}},
		{&c.Dom, cronField{name: "day of the month", low: 1, high: 31}},
		{&c.Month, cronField{name: "month", low: 1, high: 12, names: "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"}},
		{&c.Dow, cronField{name: "day of the week", high: 7, names: "SUNMONTUEWEDTHUFRISAT"}},
	} {
		var err error
		if *f.bits, err = f.parse(words[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if c.Dow&(1<<7) != 0 {
		c.Dow = c.Dow&^(1<<7) | 1
	}
	if _, ok := c.findLocalTime(0, maxSearchSeconds); !ok {
		return nil, errors.New("it never matches")
	}
	return c, nil
}

// A cronField says what a field of a cron spec may contain.
type cronField struct {
	name      string
	low, high int
	names     string // three letters for each number from low on, or empty
}

// parse returns the set of numbers in the text, with the bit of the star if it begins
// with one.
func (f *cronField) parse(text string) (bits uint64, err error) {
	if text[0] == '*' || text[0] == '?' {
		bits = starBit
	}
	for part := range strings.SplitSeq(text, ",") {
		if f.high == 31 && strings.EqualFold(part, "L") {
			bits |= lastDayBit
			continue
		}
		numbers, stepText, hasStep := strings.Cut(part, "/")
		lowText, highText, isRange := strings.Cut(numbers, "-")
		low, high, step := f.low, f.high, 1
		if isStar := numbers == "*" || numbers == "?"; isStar && f.high == 7 {
			high = 6
		} else if !isStar {
			if low, err = f.number(lowText); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if high, err = f.number(highText); err != nil {
					return 0, err
				}
				if high == 0 && f.high == 7 && low > 0 {
					high = 7 // FRI-SUN
				}
			case !hasStep:
				high = low
			case f.high == 7:
				high = 6
			}
		}
		if hasStep {
			step, err = strconv.Atoi(stepText)
		}
		if err != nil || step < 1 || stepText != "" && stepText[0] == '+' {
			return 0, fmt.Errorf("the step %q is not a positive number", stepText)
		}
		if low > high {
			return 0, fmt.Errorf("the range %q ends before it begins", numbers)
		}
		for i := low; i <= high; i += min(step, 100) {
			bits |= 1 << i
		}
	}
	return bits, nil
}

// number parses a number, or one of the names.
func (f *cronField) number(text string) (int, error) {
	if i := strings.Index(f.names, strings.ToUpper(text)); len(text) == 3 && i >= 0 && i%3 == 0 {
		return f.low + i/3, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.low || n > f.high || text[0] == '+' || text[0] == '-' {
		return 0, fmt.Errorf("%q is not from %d to %d", text, f.low, f.high)
	}
	return n, nil
}
