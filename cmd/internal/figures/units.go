package figures

import (
	"fmt"
	"strconv"
	"time"
)

// The functions below format a figure with its unit. Durations are in nanoseconds.

func FormatWhole(v float64) string   { return GroupDigits(int64(v)) }
func FormatMillis(v float64) string  { return fmt.Sprintf("%.2f ms", v/float64(time.Millisecond)) }
func FormatSeconds(v float64) string { return fmt.Sprintf("%.2f s", v/float64(time.Second)) }
func FormatNanos(v float64) string   { return fmt.Sprintf("%.0f ns", v) }

func FormatMegabytes(v float64) string { return fmt.Sprintf("%.1f MB", v/1e6) }
func FormatGibibytes(v float64) string { return fmt.Sprintf("%.2f GiB", v/(1<<30)) }

// GroupDigits formats n in groups of three digits: 1,000,000.
func GroupDigits(n int64) string {
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
