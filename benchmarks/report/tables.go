package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// tableTitles are the headings of the workloads' tables. The default is the workload's
// name.
var tableTitles = map[string]string{
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
	"Sweep":         "Many patterns of load, in a process that does nothing else",
	"Context":       "A context with a timeout",
	"ContextLive":   "A million contexts that nobody waits for",
	"Schedule":      "Schedule tasks",
	"Burst":         "100,000 tasks due at once",
	"Steady":        "Tasks a second",
	"Memory":        "A pending task",
	"Idle":          "A worker with nothing to do",
	"StoreSchedule": "Schedule tasks",
	"StoreClaim":    "20,000 due tasks, claimed by 100, each claim with the reports of the one before",
	"StoreBurst":    "40,000 tasks due at once, handled and reported",
	"StoreHandlers": "20,000 tasks due at once, by the handlers of the worker",
	"StoreLate":     "Tasks for random times: how late they begin",
}

// errorUnits count events that should not happen. A median alone would hide rare events,
// so their rows also show the worst run.
var errorUnits = []string{"early", "early-%", "lost", "wrong"}

// The best figure of a row is the smallest. For higherIsBetterUnits it is the
// largest. Rows with unrankedUnits have no best figure.
var higherIsBetterUnits, unrankedUnits = []string{"tasks/s"}, []string{"ticks"}

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
		r.writeTable(&b, w)
	}
	return b.String()
}

func (r *results) writeTable(b *strings.Builder, workload string) {
	var impls []string
	var keys []rowKey
	minRuns, maxRuns := math.MaxInt, 0
	for _, k := range r.keys {
		if k.workload != workload || r.shouldOmitRow(k) {
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
	title := tableTitles[workload]
	if title == "" {
		title = workload
	}
	runsText := strconv.Itoa(maxRuns)
	if minRuns < maxRuns {
		runsText = strconv.Itoa(minRuns) + " to " + runsText
	}
	fmt.Fprintf(b, "\n**%s** (`%s`, %s runs)\n\n| |", title, workload, runsText)
	units := unitsOfRows(keys)
	if len(keys) == len(units) || len(units) < 2 || len(impls)*len(units) > 9 {
		fmt.Fprintf(b, " %s |\n|---|%s\n", strings.Join(impls, " | "), strings.Repeat("---:|", len(impls)))
		for _, k := range keys {
			fmt.Fprintf(b, "| %s |%s\n", strings.TrimSpace(k.params+" "+k.unit), r.formatCells(k, impls))
		}
		return
	}
	// The figures of all units fit into one row.
	for _, unit := range units {
		fmt.Fprintf(b, " %s: %s |", unit, strings.Join(impls, " | "))
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(impls)*len(units)))
	for i, k := range keys {
		if i%len(units) == 0 {
			fmt.Fprintf(b, "\n| %s |", k.params)
		}
		b.WriteString(r.formatCells(k, impls))
	}
	b.WriteString("\n")
}

// unitsOfRows returns the units that the rows of each benchmark have, in order. It returns
// none if these differ.
func unitsOfRows(keys []rowKey) (units []string) {
	for i, k := range keys {
		if k.params == keys[0].params {
			units = append(units, k.unit)
		} else if k.unit != units[i%len(units)] {
			return nil
		}
	}
	if len(keys)%len(units) != 0 {
		return nil
	}
	return units
}

// shouldOmitRow reports whether the table omits row k. It omits
//
//   - allocs/op, switches/s, which the CPU time shows, and what Held has beside the memory
//     of a pending timer and the time of a collection
//   - B/op, except in the workload's first row with B/op
//   - ns/op and B/op if all figures are 0
//   - last-ms beside p99.9-ms, and p50-ms beside max-ms
//   - errors that never happened
func (r *results) shouldOmitRow(k rowKey) bool {
	switch k.unit {
	case "allocs/op", "switches/s", "ns/start", "peak-B/timer":
		return true
	case "last-ms":
		return r.samples[rowKey{k.workload, k.params, "p99.9-ms"}] != nil
	case "p50-ms":
		return r.samples[rowKey{k.workload, k.params, "max-ms"}] != nil
	case "B/op":
		firstRowIndex := slices.IndexFunc(r.keys, func(x rowKey) bool { return x.workload == k.workload && x.unit == k.unit })
		if r.keys[firstRowIndex] != k {
			return true
		}
	}
	for impl := range r.samples[k] {
		if r.largestFigure(k, impl) > 0 {
			return false
		}
	}
	return k.unit == "ns/op" || k.unit == "B/op" || slices.Contains(errorUnits, k.unit)
}

// formatCells returns the figures of row k.
func (r *results) formatCells(k rowKey, impls []string) (cells string) {
	isErrorUnit := slices.Contains(errorUnits, k.unit)
	bestText := ""
	if !isErrorUnit && !slices.Contains(unrankedUnits, k.unit) {
		bestText = r.bestFigure(k, impls)
	}
	for _, impl := range impls {
		v, ok := r.median(k, impl)
		worst := r.largestFigure(k, impl)
		switch {
		case !ok:
			cells += " |"
		case isErrorUnit && worst > v:
			cells += " " + formatNumber(v) + ", worst " + formatNumber(worst) + " |"
		case formatNumber(v) == bestText:
			cells += " **" + formatNumber(v) + "** |"
		default:
			cells += " " + formatNumber(v) + " |"
		}
	}
	return cells
}

// bestFigure returns the best figure of row k as it is printed, or "" if fewer than two
// implementations have one. An implementation that lost timers or ran them early cannot
// have the best lateness.
func (r *results) bestFigure(k rowKey, impls []string) string {
	bestValue, count := math.NaN(), 0
	for _, impl := range impls {
		v, ok := r.median(k, impl)
		if !ok {
			continue
		}
		count++
		hasErrors := strings.HasSuffix(k.unit, "-ms") && slices.ContainsFunc(errorUnits, func(unit string) bool {
			return r.largestFigure(rowKey{k.workload, k.params, unit}, impl) > 0
		})
		isBetter := v < bestValue
		if slices.Contains(higherIsBetterUnits, k.unit) {
			isBetter = v > bestValue
		}
		if v >= 0 && !hasErrors && (math.IsNaN(bestValue) || isBetter) {
			bestValue = v
		}
	}
	if count < 2 || math.IsNaN(bestValue) {
		return ""
	}
	return formatNumber(bestValue)
}

// formatNumber formats v with three digits, or with more if they are before the decimal
// point: 0.0123, 14.2, 1,234,567.
func formatNumber(v float64) string {
	if v == 0 {
		return "0"
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	s := strconv.FormatFloat(math.Abs(v), 'f', min(decimals, 4), 64)
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
