package cli

import (
	"fmt"
	"strconv"
	"time"
)

// The functions below format a figure with its unit. Durations are in nanoseconds.

func Whole(v float64) string   { return Thousands(int64(v)) }
func Millis(v float64) string  { return fmt.Sprintf("%.2f ms", v/float64(time.Millisecond)) }
func Seconds(v float64) string { return fmt.Sprintf("%.2f s", v/float64(time.Second)) }
func Nanos(v float64) string   { return fmt.Sprintf("%.0f ns", v) }

func Megabytes(v float64) string { return fmt.Sprintf("%.1f MB", v/1e6) }
func Gibibytes(v float64) string { return fmt.Sprintf("%.2f GiB", v/(1<<30)) }

// Percent formats a fraction between 0 and 1 as a percentage.
func Percent(v float64) string { return strconv.FormatFloat(v*100, 'f', -1, 64) + "%" }

// Thousands formats n in groups of three digits.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}
