package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// titles are the headings of the workloads' tables. The default is the workload's name.
var titles = map[string]string{
	"StartStop":     "Start and stop a timer, n others pending",
	"Churn":         "Stop a random one of n and start another",
	"Reset":         "Reset one of n that are pending",
	"StopReset":     "Stop a random one of n Timers and reset the same one",
	"Held":          "n pending",
	"KeyedSet":      "Set one of n pending keys",
	"Expiry":        "n due within one second",
	"ExpirySlack":   "n due within one second, with slack",
	"Heartbeats":    "n connections, a heartbeat every 5 s, a timeout of 30 s",
	"BusyBurst":     "n due at once beside computing goroutines",
	"BusyRate":      "1,000 a second beside computing goroutines",
	"BusyQueue":     "A timer behind 3,000 callbacks of 2 ms",
	"Rates":         "Timers a second, in a process that does nothing else",
	"Tickers":       "n tickers",
	"Context":       "A context with a timeout",
	"ContextLive":   "A million contexts that nobody waits for",
	"Schedule":      "Schedule tasks",
	"Burst":         "100,000 tasks due at once",
	"Steady":        "Tasks a second",
	"Memory":        "A pending task",
	"Idle":          "A worker with nothing to do",
	"StoreSchedule": "Schedule tasks",
	"StoreBurst":    "40,000 tasks due at once, handled and reported",
	"StoreLate":     "1,000 tasks a second",
}

// errorUnits count events that should not happen. A median would hide rare events, so
// their rows show the worst run.
var errorUnits = []string{"early", "early-%", "lost", "wrong"}

// The best figure of a row is the smallest. For the units in moreIsBetter it is the
// largest. Rows with neutralUnits have no best figure.
var moreIsBetter, neutralUnits = []string{"tasks/s"}, []string{"ticks"}

// markdown returns the page with all tables.
func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results of `make bench MODE=%s`\n\n", r.header["mode"])
	fmt.Fprintf(&b, "Commit %s, %s, %s, %s procs, %s, %s, %s. [How to read them](../README.md).\n", r.header["commit"], r.header["go"],
		r.header["cpu"], r.header["procs"], r.header["memory"], r.header["system"], r.header["date"])
	var workloads []string
	for _, k := range r.keys {
		if !slices.Contains(workloads, k.workload) {
			workloads = append(workloads, k.workload)
		}
	}
	for _, w := range workloads {
		r.table(&b, w)
	}
	return b.String()
}

func (r *results) table(b *strings.Builder, workload string) {
	var impls []string
	var keys []key
	minRuns, maxRuns := math.MaxInt, 0
	for _, k := range r.keys {
		if k.workload != workload || r.omitRow(k) {
			continue
		}
		keys = append(keys, k)
		for impl, figures := range r.samples[k] {
			minRuns, maxRuns = min(minRuns, len(figures)), max(maxRuns, len(figures))
			if !slices.Contains(impls, impl) {
				impls = append(impls, impl)
			}
		}
	}
	if len(keys) == 0 {
		return
	}
	slices.SortFunc(impls, func(x, y string) int { return slices.Index(r.impls, x) - slices.Index(r.impls, y) })
	title := titles[workload]
	if title == "" {
		title = workload
	}
	runs := strconv.Itoa(maxRuns)
	if minRuns < maxRuns {
		runs = strconv.Itoa(minRuns) + " to " + runs
	}
	fmt.Fprintf(b, "\n**%s** (`%s`, %s runs)\n\n| | %s |\n|---|%s\n", title, workload, runs,
		strings.Join(impls, " | "), strings.Repeat("---:|", len(impls)))
	for _, k := range keys {
		b.WriteString(r.row(k, impls))
	}
}

// omitRow reports whether the table omits row k:
//
//   - allocs/op
//   - B/op, except in the workload's first row with B/op
//   - ns/op if all figures are 0
//   - errors that never happened
func (r *results) omitRow(k key) bool {
	switch k.unit {
	case "allocs/op":
		return true
	case "B/op":
		firstIndex := slices.IndexFunc(r.keys, func(x key) bool { return x.workload == k.workload && x.unit == k.unit })
		return r.keys[firstIndex] != k
	}
	for impl := range r.samples[k] {
		if r.largest(k, impl) > 0 {
			return false
		}
	}
	return k.unit == "ns/op" || slices.Contains(errorUnits, k.unit)
}

// row returns a row of a table. Its first cell is, for example, "n=1M/p=1 ns/op".
func (r *results) row(k key, impls []string) string {
	isError := slices.Contains(errorUnits, k.unit)
	best := ""
	if !isError && !slices.Contains(neutralUnits, k.unit) {
		best = r.best(k, impls)
	}
	row := "| " + strings.TrimSpace(k.params+" "+k.unit) + " |"
	for _, impl := range impls {
		v, ok := r.median(k, impl)
		if isError {
			v = r.largest(k, impl)
		}
		switch {
		case !ok:
			row += " |"
		case formatNumber(v) == best:
			row += " **" + formatNumber(v) + "** |"
		default:
			row += " " + formatNumber(v) + " |"
		}
	}
	return row + "\n"
}

// best returns the best figure of row k as it is printed, or "" if fewer than two
// implementations have one. An implementation that lost timers or ran them early cannot
// have the best lateness.
func (r *results) best(k key, impls []string) string {
	best, count := math.NaN(), 0
	for _, impl := range impls {
		v, ok := r.median(k, impl)
		if !ok {
			continue
		}
		count++
		hasErrors := strings.HasSuffix(k.unit, "-ms") && slices.ContainsFunc(errorUnits, func(unit string) bool {
			return r.largest(key{k.workload, k.params, unit}, impl) > 0
		})
		better := v < best
		if slices.Contains(moreIsBetter, k.unit) {
			better = v > best
		}
		if v >= 0 && !hasErrors && (math.IsNaN(best) || better) {
			best = v
		}
	}
	if count < 2 || math.IsNaN(best) {
		return ""
	}
	return formatNumber(best)
}

// formatNumber formats v with three digits, or with more if they are before the decimal
// point: 0.0123, 14.2, 1,234,567.
func formatNumber(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	s := strconv.FormatFloat(math.Abs(v), 'f', min(digits, 4), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	whole, fraction, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if v < 0 {
		return "-" + whole
	}
	return whole
}
