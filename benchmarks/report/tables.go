package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// titles describe the workloads. A workload without a title is shown by its name.
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

// defects are units of events that should not happen. A median would hide the few runs
// in which they do, so their rows show the worst run, and are omitted if all runs have
// 0.
var defects = []string{"early", "early-%", "lost", "wrong"}

// moreIsBetter and neutral are units. For units in neither list, less is better.
var moreIsBetter, neutral = []string{"tasks/s"}, []string{"ticks"}

// markdown returns a table for each workload. README.md, in the parent folder of the
// results, explains them.
func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results of `make bench MODE=%s`\n\n", r.config["mode"])
	fmt.Fprintf(&b, "Commit %s, %s, %s, %s procs, %s, %s, %s. [How to read them](../README.md).\n", r.config["commit"], r.config["go"],
		r.config["cpu"], r.config["procs"], r.config["memory"], r.config["system"], r.config["date"])
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
	least, most := math.MaxInt, 0
	for _, k := range r.keys {
		if k.workload != workload || r.dull(k) {
			continue
		}
		keys = append(keys, k)
		for impl, runs := range r.samples[k] {
			least, most = min(least, len(runs)), max(most, len(runs))
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
	runs := strconv.Itoa(most)
	if least < most {
		runs = strconv.Itoa(least) + " to " + runs
	}
	fmt.Fprintf(b, "\n**%s** (`%s`, %s runs)\n\n| | %s |\n|---|%s\n", title, workload, runs,
		strings.Join(impls, " | "), strings.Repeat("---:|", len(impls)))
	for _, k := range keys {
		b.WriteString(r.row(k, impls))
	}
}

// dull reports whether to omit a row: a time that the benchmark has hidden, a defect
// that never happened, or allocations that an earlier row of the workload shows.
func (r *results) dull(k key) bool {
	switch k.unit {
	case "allocs/op":
		return true
	case "B/op":
		first := slices.IndexFunc(r.keys, func(x key) bool { return x.workload == k.workload && x.unit == k.unit })
		return r.keys[first] != k
	}
	for impl := range r.samples[k] {
		if r.most(k, impl) > 0 {
			return false
		}
	}
	return k.unit == "ns/op" || slices.Contains(defects, k.unit)
}

// row returns a table row, named like the benchmark without the implementation:
// n=1M/p=1 ns/op.
func (r *results) row(k key, impls []string) string {
	defect := slices.Contains(defects, k.unit)
	best := ""
	if !defect && !slices.Contains(neutral, k.unit) {
		best = r.best(k, impls)
	}
	row := "| " + strings.TrimSpace(k.params+" "+k.unit) + " |"
	for _, impl := range impls {
		v, ok := r.median(k, impl)
		if defect {
			v = r.most(k, impl)
		}
		switch {
		case !ok:
			row += " |"
		case number(v) == best:
			row += " **" + number(v) + "** |"
		default:
			row += " " + number(v) + " |"
		}
	}
	return row + "\n"
}

// best returns the best figure of a row, as formatted, if there are several. For
// lateness, an implementation that fired timers early or lost some cannot be the best.
func (r *results) best(k key, impls []string) string {
	best, rows := math.NaN(), 0
	for _, impl := range impls {
		v, ok := r.median(k, impl)
		if !ok {
			continue
		}
		rows++
		failed := strings.HasSuffix(k.unit, "-ms") && slices.ContainsFunc(defects, func(m string) bool {
			return r.most(key{k.workload, k.params, m}, impl) > 0
		})
		better := v < best
		if slices.Contains(moreIsBetter, k.unit) {
			better = v > best
		}
		if v >= 0 && !failed && (math.IsNaN(best) || better) {
			best = v
		}
	}
	if rows < 2 || math.IsNaN(best) {
		return ""
	}
	return number(best)
}

// number formats v with three digits, or more if they are before the decimal point.
func number(v float64) string {
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
