package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// titles say what the workloads are. Those that are missing go by their names.
var titles = map[string]string{
	"StartStop":   "Start and stop a timer, n others pending",
	"Churn":       "Stop a random one of n and start another",
	"Reset":       "Reset one of n that are pending",
	"StopReset":   "Stop a random one of n Timers and reset the same one",
	"Held":        "A million pending",
	"KeyedSet":    "Set a key that is pending",
	"Expiry":      "A million due within one second",
	"ExpirySlack": "The same, with a slack of 10 ms",
	"Heartbeats":  "100,000 connections that send a heartbeat every 5 s, with a timeout of 30 s",
	"BusyBurst":   "100,000 due at once, beside goroutines that compute",
	"BusyRate":    "A thousand a second, beside goroutines that compute",
	"BusyQueue":   "A timer behind 3,000 callbacks of 2 ms",
	"Rates":       "So many timers a second in a process that does nothing else",
	"Tickers":     "10,000 tickers",
	"Context":     "A context with a timeout",
	"ContextLive": "A million contexts that nobody waits for",
}

// mishaps are units of what should not happen. A median would hide the few runs in which
// it does, so their rows have the worst run's number, and are left out if all are 0.
var mishaps = []string{"early", "lost", "wrong"}

// more are units of which more is better, and neutral those of which neither is.
var more, neutral = []string{"tasks/s"}, []string{"ticks", "MB/s"}

// markdown returns a table for each workload.
func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results of `make bench MODE=%s`\n\n", r.config["mode"])
	fmt.Fprintf(&b, "Commit %s, %s, %s, %s procs, %s, %s, %s.\n", r.config["commit"], r.config["go"],
		r.config["cpu"], r.config["procs"], r.config["memory"], r.config["system"], r.config["date"])
	b.WriteString("Medians; lower is better unless the unit is tasks/s, and the best of a row is bold. " +
		"`ratio` is `tickless` to " + "`" + r.rival() + "`" + ". Timers that were early, lost or wrong have a row if there were any, with the worst run's number.\n")
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

// rival is the implementation that the ratios compare ours with.
func (r *results) rival() string {
	if r.config["mode"] == "redis" {
		return "asynq-tuned"
	}
	return "time"
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
	fmt.Fprintf(b, "\n**%s** (`%s`, %s runs)\n\n| | %s | ratio |\n|---|%s\n", title, workload, runs,
		strings.Join(impls, " | "), strings.Repeat("---:|", len(impls)+1))
	for _, k := range keys {
		b.WriteString(r.row(k, impls))
	}
}

// dull reports whether a row says nothing new: a time that the benchmark has hidden, a
// mishap that never happened, or what was allocated, if another row says it in bytes on one
// proc.
func (r *results) dull(k key) bool {
	if k.unit == "allocs/op" || k.unit == "B/op" && strings.Contains(k.params, "p=") && !strings.Contains(k.params, "p=1") {
		return true
	}
	for impl := range r.samples[k] {
		if r.most(k, impl) > 0 {
			return false
		}
	}
	return k.unit == "ns/op" || slices.Contains(mishaps, k.unit)
}

func (r *results) row(k key, impls []string) string {
	mishap := slices.Contains(mishaps, k.unit)
	figure := func(impl string) (float64, bool) {
		v, ok := r.median(k, impl)
		if ok && mishap {
			v = r.most(k, impl)
		}
		return v, ok
	}
	best := ""
	if !mishap && !slices.Contains(neutral, k.unit) {
		best = r.best(k, impls)
	}
	name := strings.NewReplacer("/", ", ", "=", " ").Replace(k.params)
	row := fmt.Sprintf("| %s, %s |", name, k.unit)
	if name == "" {
		row = fmt.Sprintf("| %s |", k.unit)
	}
	for _, impl := range impls {
		v, ok := figure(impl)
		switch {
		case !ok:
			row += " |"
		case number(v) == best:
			row += " **" + number(v) + "** |"
		default:
			row += " " + number(v) + " |"
		}
	}
	ours, ok1 := r.median(k, "tickless")
	theirs, ok2 := r.median(k, r.rival())
	if mishap || !ok1 || !ok2 || ours < 0 || theirs <= 0 {
		return row + " |\n"
	}
	return row + " " + strconv.FormatFloat(ours/theirs, 'f', 2, 64) + " |\n"
}

// best returns the best figure of a row of several, as it is written. Who has fired timers
// early, or lost some, cannot be the best at how late they were.
func (r *results) best(k key, impls []string) string {
	best, rows := math.NaN(), 0
	for _, impl := range impls {
		v, ok := r.median(k, impl)
		if !ok {
			continue
		}
		rows++
		failed := strings.HasSuffix(k.unit, "-ms") && slices.ContainsFunc(mishaps, func(m string) bool {
			return r.most(key{k.workload, k.params, m}, impl) > 0
		})
		better := v < best
		if slices.Contains(more, k.unit) {
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

// number writes v with three digits, or all of those before the point.
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
