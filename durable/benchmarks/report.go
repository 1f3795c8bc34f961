package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// report returns a table: medians, and the ratio of the disk store to what it stands on
// and to what one might write instead.
func report(s *settings, all results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results of the stores\n\nCommit %s, %s, %s/%s, %s, %d procs. Medians of %d runs of %v, each in a process of its own; the tasks have 256 bytes; %s tasks in a burst.\n\n",
		commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, processor(), runtime.GOMAXPROCS(0), s.runs, s.time, thousands(float64(s.tasks), 0))
	b.WriteString("| | " + strings.Join(s.sides, " | ") + " | disk / pebble | disk / sqlite | target |\n|---|" +
		strings.Repeat("---:|", len(s.sides)+2) + "---|\n")
	for _, w := range works {
		if !slices.Contains(s.works, w.name) {
			continue
		}
		for _, r := range w.rows {
			fmt.Fprintf(&b, "| %s (%s) |", r.title, r.unit)
			for _, side := range s.sides {
				b.WriteString(" " + cell(all[key(side, w.name, r.figure)], r.digits) + " |")
			}
			for _, other := range []string{"pebble", "sqlite"} {
				b.WriteString(" " + ratio(all[key("disk", w.name, r.figure)], all[key(other, w.name, r.figure)]) + " |")
			}
			fmt.Fprintf(&b, " %s |\n", r.target)
		}
	}
	return b.String()
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	if n := len(xs); n%2 == 0 {
		return (xs[n/2-1] + xs[n/2]) / 2
	}
	return xs[len(xs)/2]
}

func cell(xs []float64, digits int) string {
	if len(xs) == 0 {
		return ""
	}
	return thousands(median(xs), digits)
}

func ratio(a, b []float64) string {
	if len(a) == 0 || len(b) == 0 {
		return ""
	}
	return strconv.FormatFloat(median(a)/median(b), 'f', 2, 64)
}

// thousands writes a number with commas.
func thousands(x float64, digits int) string {
	s := strconv.FormatFloat(x, 'f', digits, 64)
	whole, rest, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		rest = "." + rest
	}
	return whole + rest
}

// commit returns what was measured.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "an unknown processor"
}
