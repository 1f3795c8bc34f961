package console

import (
	"fmt"
	"strconv"
	"strings"
)

// inWords describes a cron spec: the ordinary ones in words, others as they are.
func inWords(spec, zone string) string {
	if zone == "" {
		zone = "UTC"
	}
	words, ok := cronWords(strings.Fields(spec))
	if !ok {
		return "by the cron spec " + spec + ", " + zone
	}
	return words + ", " + zone
}

var spokenSpecs = map[string]string{"@hourly": "every hour", "@daily": "every day at 00:00", "@midnight": "every day at 00:00",
	"@weekly": "every Sunday at 00:00", "@monthly": "on day 1 of every month at 00:00", "@yearly": "every year on 1 January at 00:00", "@annually": "every year on 1 January at 00:00"}

func cronWords(f []string) (string, bool) {
	if len(f) == 1 {
		words, ok := spokenSpecs[strings.ToLower(f[0])]
		return words, ok
	}
	if len(f) == 2 && f[0] == "@every" {
		return "every " + f[1], true
	}
	if len(f) != 5 || f[3] != "*" {
		return "", false
	}
	minute, hour, day, weekday := f[0], f[1], f[2], f[4]
	days := ""
	switch {
	case day == "*" && weekday == "*":
		days = "every day"
	case day == "*":
		names, ok := weekdayNames(weekday)
		if !ok {
			return "", false
		}
		days = "on " + names
	case weekday == "*" && isNumber(day):
		days = "on day " + day + " of every month"
	default:
		return "", false
	}
	step, isStep := strings.CutPrefix(minute, "*/")
	switch {
	case minute == "*" && hour == "*":
		return times("every minute", days), true
	case isStep && isNumber(step) && hour == "*":
		return times("every "+step+" minutes", days), true
	case isNumber(minute) && hour == "*":
		return times("every hour at minute "+minute, days), true
	}
	m, err := strconv.Atoi(minute)
	h, hourErr := strconv.Atoi(hour)
	if err != nil || hourErr != nil {
		return "", false
	}
	return fmt.Sprintf("%s at %02d:%02d", days, h, m), true
}

func times(often, days string) string {
	if days == "every day" {
		return often
	}
	return often + " " + days
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 8)
	return err == nil
}

var weekdays = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// weekdayNames names the days of a list or a range, such as 1-5 or MON,WED.
func weekdayNames(field string) (string, bool) {
	var names []string
	for part := range strings.SplitSeq(field, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, ok := weekday(first)
		if !ok {
			return "", false
		}
		name := weekdays[from]
		if isRange {
			to, ok := weekday(last)
			if !ok {
				return "", false
			}
			name += " to " + weekdays[to]
		}
		names = append(names, name)
	}
	return strings.Join(names, ", "), true
}

func weekday(s string) (int, bool) {
	for i, name := range weekdays[:7] {
		if strings.EqualFold(s, name[:3]) {
			return i, true
		}
	}
	n, err := strconv.ParseUint(s, 10, 8)
	return int(n), err == nil && n <= 7
}
