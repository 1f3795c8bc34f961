package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report returns a table: medians, and the ratio of the store in a file to what one might
// write instead.
func report(s *settings, all results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured at %s. Medians of %d runs of %v, each in a process of its own, the sides in turn; the tasks have 256 bytes; %s tasks in a burst. Behind a ratio of medians is that of the means.\n\n",
		place(), s.runs, s.time, thousands(float64(s.tasks), 0))
	b.WriteString("| | " + strings.Join(s.sides, " | ") + " | file / table | target |\n|---|" +
		strings.Repeat("---:|", len(s.sides)+1) + "---|\n")
	for _, w := range works {
		if !slices.Contains(s.works, w.name) {
			continue
		}
		for _, r := range w.rows {
			fmt.Fprintf(&b, "| %s (%s) |", r.title, r.unit)
			for _, side := range s.sides {
				b.WriteString(" " + cell(all[key(side, w.name, r.figure)], r.digits) + " |")
			}
			fmt.Fprintf(&b, " %s | %s |\n", ratio(all[key("file", w.name, r.figure)], all[key("table", w.name, r.figure)]), r.target)
		}
	}
	return b.String()
}

// publish writes the table into a file: between the markers if they are in it, or as all
// of a new one.
func publish(path, table string) error {
	const begin, end = "<!-- stores: begin (make bench MODE=stores writes this) -->", "<!-- stores: end -->"
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = []byte("# Results of the stores\n\n" + begin + "\n" + end + "\n")
	case err != nil:
		return err
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s: there is no %s with a %s behind it", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+"\n\n"+table+"\n"+end+after), 0o644)
}

// raw returns the figures of all runs in the format of Go's benchmarks, which benchstat
// reads.
func raw(all results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "date: %s\ncommit: %s\ngo: %s\ngoos: %s\ngoarch: %s\ncpu: %s\nprocs: %d\nmemory: %s\nsystem: %s\nmode: stores\n",
		time.Now().UTC().Format(time.DateOnly), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, processor(), runtime.GOMAXPROCS(0), memory(), system())
	for _, k := range slices.Sorted(maps.Keys(all)) {
		parts := strings.Split(k, "/")
		unit := map[string]string{"rate": "tasks/s"}[parts[2]]
		if unit == "" {
			unit = parts[2] + "-ms"
		}
		for _, v := range all[k] {
			fmt.Fprintf(&b, "BenchmarkStores/work=%s/impl=%s-%d 1 %.5g %s\n", parts[1], parts[0], runtime.GOMAXPROCS(0), v, unit)
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
	two := func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }
	of := two(median(a) / median(b))
	if len(a) > 1 && len(b) > 1 {
		of += " (" + two(mean(a)/mean(b)) + ")"
	}
	return of
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
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
