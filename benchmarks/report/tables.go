package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// apart reports whether an implementation is out of competition: it is a control, which
// has no timers.
func apart(impl string) bool { return impl == "none" || impl == "noted" }

// A row is one measurement of all implementations.
type row struct {
	key   key
	title string // with the unit
	// plain rows have no best and no ratio: numbers of mishaps, which should be
	// none, and what the control took.
	plain bool
	// higher: a higher figure is better.
	higher bool
}

// mishap reports whether a row is of mishaps. A median would hide those of a few runs: its
// figures are the largest of all runs, with the number of runs that had any.
func (w row) mishap() bool { return slices.Contains(mishaps, w.key.unit) }

var mishaps = []string{"early", "lost", "wrong"}

// worst reports whether a row is of the worst that a run saw. Its medians have the largest
// of all runs beside them.
func (w row) worst() bool { return slices.Contains(worsts, w.key.unit) }

var worsts = []string{"max-ms", "worst-ms", "last-ms", "late-ms", "max-us", "control-max-us"}

// figure returns what a row says of an implementation; ok is false if that was not
// measured.
func (w row) figure(r *results, impl string) (v float64, ok bool) {
	if v, ok = r.median(w.key, impl); ok && w.mishap() {
		v = r.mostOf(w.key, impl)
	}
	return v, ok
}

// beside returns what stands behind a figure.
func (w row) beside(r *results, impl string) string {
	runs := r.samples[w.key][impl]
	if len(runs) < 2 {
		return ""
	}
	most := r.mostOf(w.key, impl)
	switch {
	case w.mishap() && most > 0:
		some := len(slices.DeleteFunc(slices.Clone(runs), func(v float64) bool { return v == 0 }))
		return fmt.Sprintf(" (in %d of %d)", some, len(runs))
	case w.worst() && !w.mishap():
		if v, _ := r.median(w.key, impl); number(most) != number(v) {
			return " (" + number(most) + ")"
		}
	}
	return ""
}

// A table is a group of rows.
type table struct {
	title, note string
	rows        []row
}

// layout returns the tables; brief leaves out sizes that say little more than
// those beside them.
func layout(r *results, brief bool) []table {
	if r.config["mode"] == redis {
		return redisLayout()
	}
	each := func(workload, unit, title string, plain bool) []row {
		var rows []row
		for _, p := range r.params(workload, unit) {
			if !brief || telling(r, workload, unit, p) {
				w := row{key: key{workload, p, unit}, title: describe(workload, title, p), plain: plain}
				if unit == "ticks" { // more than were due is no merit
					w.plain, w.title = true, w.title+" (of 1)"
				}
				rows = append(rows, w)
			}
		}
		return rows
	}
	metrics := func(workload string, units ...[2]string) []row {
		var rows []row
		for _, u := range units {
			plain := slices.Contains(mishaps, u[0]) || strings.HasPrefix(u[0], "control-") || slices.Contains(same, workload)
			rows = append(rows, each(workload, u[0], u[1], plain)...)
		}
		return rows
	}
	operations := slices.Concat(
		metrics("StartStop", [2]string{"ns/op", "start and stop, ns"}),
		metrics("StartStopAlone", [2]string{"ns/op", "start and stop, one goroutine, ns"}),
		metrics("StartStopFixed", [2]string{"ns/op", "the same, one delay of 30 s for all, ns"}),
		metrics("Churn", [2]string{"ns/op", "churn: stop a random one, start another, ns"}),
		metrics("Reset", [2]string{"ns/op", "reset, ns"}),
		metrics("KeyedSet", [2]string{"ns/op", "set a key that is pending, ns"}),
		metrics("Held", [2]string{"ns/start", "start one of 1M that stay pending, ns"}),
		metrics("StartStop", [2]string{"B/op", "start and stop, allocated bytes"}),
	)
	var slack []row
	if slices.Contains(r.impls, "tickless-slack") {
		slack = metrics("ExpirySlack",
			[2]string{"cpu-s", "CPU time, s"},
			[2]string{"p50-ms", "late at p50, ms"},
			[2]string{"last-ms", "the last one late by, ms"},
			[2]string{"early", "early"},
			[2]string{"lost", "lost"})
	}
	return []table{
		{"Starting, stopping, moving", "", operations},
		{"With a limit of pending timers", "`tickless-limit` has WithMaxPending of twice as many as are pending, `tickless-full` of as many: each start takes one of the last.", metrics("Limits", [2]string{"ns/op", "start and stop, ns"})},
		{"Memory and garbage collection", "A million pending timers, without what the caller keeps of them. The peak is what the process took of the machine while they were started.", metrics("Held",
			[2]string{"B/timer", "live heap a timer, bytes"},
			[2]string{"peak-B/timer", "peak memory a timer, bytes"},
			[2]string{"gc-ms", "a full collection, ms"})},
		{"A million due within one second", "", metrics("Expiry",
			[2]string{"p50-ms", "late at p50, ms"},
			[2]string{"last-ms", "the last one late by, ms"},
			[2]string{"p99.9-ms", "late at p99.9, ms"},
			[2]string{"cpu-s", "CPU time, s"},
			[2]string{"early", "early"},
			[2]string{"lost", "lost"})},
		{"Lateness of a thousand timers a second", "By the caller's clock, with the machine idle or all procs computing.", metrics("Lateness",
			[2]string{"p50-ms", "late at p50, ms"},
			[2]string{"p99-ms", "late at p99, ms"},
			[2]string{"max-ms", "late at most, ms"},
			[2]string{"cpu-ms/s", "CPU time a second, ms"},
			[2]string{"early", "early"},
			[2]string{"lost", "lost"})},
		{"Start and stop while a million others fall due", "A control only reads the clock, in turn with them: what takes the proc from that goroutine counts for either.", metrics("Stalls",
			[2]string{"p50-ns", "p50, ns"},
			[2]string{"p99.99-us", "p99.99, µs"},
			[2]string{"control-p99.99-us", "p99.99 of the control, µs"},
			[2]string{"max-us", "slowest, µs"},
			[2]string{"control-max-us", "slowest of the control, µs"},
			[2]string{"lost", "not run when none had for 2 s"})},
		{"100,000 timers due at one moment, beside goroutines that compute", "", metrics("BusyBurst",
			[2]string{"last-ms", "the last one late by, ms"},
			[2]string{"lost", "lost"})},
		{"A thousand timers a second, beside goroutines that compute", "", metrics("BusyRate",
			[2]string{"p50-ms", "late at p50, ms"},
			[2]string{"p99-ms", "late at p99, ms"},
			[2]string{"max-ms", "late at most, ms"},
			[2]string{"early", "early"},
			[2]string{"lost", "lost"})},
		{"The same, beside a thousand goroutines that compute for 2 ms at a time", "", metrics("BusyCrowd",
			[2]string{"p50-ms", "late at p50, ms"},
			[2]string{"p99-ms", "late at p99, ms"},
			[2]string{"max-ms", "late at most, ms"},
			[2]string{"lost", "lost"})},
		{"Behind 3,000 callbacks of 2 ms each", "A timer that does nothing, and a goroutine that waits for a context's end (`time` is package context).", slices.Concat(
			metrics("BusyQueue",
				[2]string{"p50-ms", "a timer, late at p50, ms"},
				[2]string{"worst-ms", "a timer, late at most, ms"},
				[2]string{"lost", "a timer, lost"}),
			metrics("BusyContext",
				[2]string{"p50-ms", "a context, late at p50, ms"},
				[2]string{"worst-ms", "a context, late at most, ms"},
				[2]string{"lost", "a context, lost"}))},
		{"Timers of 5 ms while others move down a level of the wheel", "200,000 others beside four computing goroutines; and more on an idle machine.", slices.Concat(
			metrics("BusyMoves",
				[2]string{"p99-ms", "busy, late at p99, ms"},
				[2]string{"worst-ms", "busy, late at most, ms"},
				[2]string{"early", "busy, early"},
				[2]string{"lost", "busy, lost"}),
			metrics("IdleMoves",
				[2]string{"worst-ms", "idle, late at most, ms"},
				[2]string{"early", "idle, early"},
				[2]string{"lost", "idle, lost"}))},
		{"So many timers a second, beside a hundred goroutines that wait", "As those of a server do for requests.", metrics("RatesBeside",
			[2]string{"cpu-ms/s", "CPU time a second, ms"},
			[2]string{"switches/s", "context switches a second"},
			[2]string{"p50-ms", "late at p50, ms"},
			[2]string{"p99-ms", "late at p99, ms"},
			[2]string{"early", "early"},
			[2]string{"lost", "lost"})},
		{"An idle process with timers far away", "`none` is a process without timers.", metrics("Idle",
			[2]string{"cpu-us/s", "CPU time a second, µs"},
			[2]string{"switches/s", "context switches a second"})},
		{"Heartbeats of 100,000 connections", "CPU time above what the heartbeats take without timers; memory with all that a connection's timeout needs.", metrics("Heartbeats",
			[2]string{"cpu-ns/beat", "CPU time a heartbeat, ns"},
			[2]string{"B/conn", "live heap a connection, bytes"},
			[2]string{"late-ms", "the last silent one closed late by, ms"},
			[2]string{"wrong", "closed although not silent"},
			[2]string{"lost", "silent but not closed"})},
		{"WithTimeout and cancel", "`time` is package context. Nobody asks for Done; what it takes where somebody does is among the lives of contexts, in mode contexts.", slices.Concat(
			metrics("WithTimeout", [2]string{"ns/op", "a context, ns"}),
			metrics("WithTimeout", [2]string{"allocs/op", "allocations"}))},
		{"A context's life", "Made, asked, cancelled; `time` is package context. The parent is one for all, or new for each, and then what that takes is included.", slices.Concat(
			metrics("Context", [2]string{"ns", "a context, ns"}),
			metrics("ContextFive", [2]string{"ns", "five below one with a deadline, ns"}),
			metrics("Context", [2]string{"allocs", "a context, allocations"}))},
		{"Contexts: a call, memory, a parent's end, a server", "`loop` is Err of one that nobody waits for, called a thousand times. The server's figure is the CPU time of a deadline of 30 s for each request.", slices.Concat(
			metrics("ContextMethod", [2]string{"ns", "a call, ns"}),
			metrics("ContextLive", [2]string{"B/ctx", "a live one, bytes"}),
			metrics("ContextStorm", [2]string{"ms", "100,000 end with their parent, ms"}),
			metrics("ContextServer", [2]string{"cpu-ns", "a request's deadline, ns"}))},
		{"So many timers a second, in a process that does nothing else", "With a slack of 10 ms: `tickless-slack`.", metrics("Rates",
			[2]string{"cpu-ms/s", "CPU time a second, ms"},
			[2]string{"switches/s", "context switches a second"},
			[2]string{"p50-ms", "late at p50, ms"},
			[2]string{"p99-ms", "late at p99, ms"},
			[2]string{"early", "early"},
			[2]string{"lost", "lost"})},
		{"Tickers", "10,000 tickers, of which all ticks are read; and one of a microsecond, read by a goroutine for each proc, which is package time's own on either side: what they differ by is what runs do.", slices.Concat(
			metrics("Tickers",
				[2]string{"cpu-ms/s", "CPU time a second, ms"},
				[2]string{"ticks", "share of the ticks that came"}),
			metrics("MultiWakeup", [2]string{"s", "100,000 ticks of a microsecond for each, s"}))},
		{"A million due within one second, with a slack of 10 ms", "`tickless-slack` has it.", slack},
		{"Stop a random Timer of many, and reset it", "`tickless` is a Timer of AfterFunc's.", metrics("StopReset",
			[2]string{"ns/pair", "a Stop and a Reset, ns"})},
		{"Values that others embed", "`field` is a Timer that is a field, `tickless` one of Start's. For the deadline `time` is a Timer's Reset, `tickless` a Deadline that nobody waits for.", slices.Concat(
			metrics("TimerField", [2]string{"ns", "a timer, ns"}, [2]string{"allocs", "a timer, allocations"}),
			metrics("DeadlineSet", [2]string{"ns", "set a deadline later, ns"}))},
	}
}

// same are the workloads in which package time's and ours are the same code.
var same = []string{"MultiWakeup"}

// telling reports whether a row belongs into the brief tables.
func telling(r *results, workload, unit, params string) bool {
	n, largest := size(param(params, "n")), 0.0
	for _, p := range r.params(workload, unit) {
		largest = max(largest, size(param(p, "n")))
	}
	switch workload {
	case "StartStop":
		if unit == "B/op" {
			return n == 1e6 && param(params, "p") == "1"
		}
		return n == 0 || n >= 1e6
	case "Churn":
		return n >= 1e5
	case "Reset":
		return n == largest
	case "WithTimeout":
		return unit == "ns/op" || param(params, "p") == "1"
	case "StartStopFixed":
		return n == largest
	case "BusyBurst", "BusyRate":
		return param(params, "busy") != "2"
	case "BusyCrowd":
		return unit != "p50-ms"
	}
	return true
}

// differ are the workloads of which the number of timers differs between rows.
var differ = []string{"StartStop", "StartStopAlone", "StartStopFixed", "KeyedSet", "Churn", "Reset", "IdleMoves", "Limits"}

// describe adds what the params of a workload say to a title.
func describe(workload, title, params string) string {
	said := []string{title}
	for part := range strings.SplitSeq(params, "/") {
		name, v, _ := strings.Cut(part, "=")
		switch {
		case name == "busy" && (v == "0" || workload == "BusyMoves"):
		case name == "busy":
			said = append(said, v+" computing")
		case name == "n" && !slices.Contains(differ, workload):
		case name == "n" && v == "0":
			said = append(said, "none other pending")
		case name == "n":
			said = append(said, v+" pending")
		case name == "p" && v == "1":
			said = append(said, "1 proc")
		case name == "p":
			said = append(said, v+" procs")
		case name == "order" && v == "turn":
			said = append(said, "in turn")
		case name == "order":
			said = append(said, "at random")
		case name == "asked":
			said = append(said, v+" asked")
		case name == "rate":
			said = append(said, v+" timers")
		case name == "period":
			said = append(said, "every "+v)
		case name == "delay":
			said = append(said, v+" delay")
		case name == "op":
			said = append(said, strings.Replace(v, "startstop", "start and stop", 1))
		case name == "parent":
			said = append(said, "parent "+v)
		case v != "":
			said = append(said, v)
		}
	}
	if len(said) > 1 && strings.Contains(title, ", ") { // the unit comes last
		i := strings.LastIndex(title, ", ")
		said[0] = title[:i]
		return strings.Join(said, ", ") + " (" + title[i+2:] + ")"
	}
	return strings.Join(said, ", ")
}

// tables writes the tables in Markdown.
func tables(r *results, brief bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Mode %s, commit %s, %s.\n", r.config["mode"], r.config["commit"], machine(r))
	switch {
	case r.versions != nil:
		b.WriteString("Lower is better; the better of the two is bold. `@` names the version of Go; `ratio` is `tickless` to `time` with the same one, and `means` that of the means. " + undecidedNote + besideNote + "\n")
	case r.config["mode"] == redis:
		b.WriteString("Lower is better, but for tasks/s; the best of a row is bold. `ratio` is `tickless` to `asynq-tuned`, and `means` that of the means. " + undecidedNote + besideNote + "\n")
	default:
		b.WriteString("Lower is better; the best of a row is bold. `ratio` is `tickless` to `time`, and `means` that of the means. " + undecidedNote + besideNote)
		if slices.ContainsFunc(r.impls, apart) {
			b.WriteString(" `noted` and `none` are controls without timers, not rivals. Where one of them takes more than `tickless`, runs differ by more than the timers cost, so the row has no best and no ratio.")
		}
		if slices.ContainsFunc(r.keys, func(k key) bool { return slices.Contains(mishaps, k.unit) && r.most(k) > 0 }) {
			b.WriteString(" A library that fired timers early, or lost some, in any run cannot be the best of a row of how late they were.")
		}
		b.WriteString("\n")
	}
	for _, t := range layout(r, brief) {
		if r.versions != nil {
			t.writeVersions(&b, r)
		} else {
			t.write(&b, r)
		}
	}
	return b.String()
}

// undecidedNote explains rows without a best.
const undecidedNote = "Where the two say the opposite of one another neither is bold. "

// besideNote explains what figures have beside them.
const besideNote = "What is late at most, or slowest, has the worst of all runs in brackets behind the median; of what was early or lost there is the worst run's number, and in how many there were any."

// machine describes where the benchmarks ran.
func machine(r *results) string {
	parts := []string{r.config["go"], r.config["goos"] + "/" + r.config["goarch"], strings.TrimSpace(r.config["cpu"])}
	if v := r.config["procs"]; v != "" {
		parts = append(parts, v+" procs")
	}
	parts = append(parts, r.config["memory"], r.config["system"])
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == "/" }), ", ")
}

func (t table) write(b *strings.Builder, r *results) {
	var impls []string // that have figures
	for _, impl := range r.impls {
		if slices.ContainsFunc(t.rows, func(w row) bool { _, ok := r.median(w.key, impl); return ok }) {
			impls = append(impls, impl)
		}
	}
	if len(impls) == 0 {
		return
	}
	fmt.Fprintf(b, "\n**%s.**", t.title)
	if t.note != "" {
		b.WriteString(" " + t.note)
	}
	b.WriteString(" " + t.runs(r, impls))
	b.WriteString("\n\n| |")
	for _, impl := range impls {
		fmt.Fprintf(b, " %s |", impl)
	}
	b.WriteString(" ratio | means |\n|---|")
	b.WriteString(strings.Repeat("---:|", len(impls)+2))
	b.WriteString("\n")
	for _, w := range t.rows {
		w.plain = w.plain || w.drowned(r) || w.alone(r, impls)
		best, undecided := w.best(r, impls), w.undecided(r)
		if undecided { // between two: of somebody else who is the best this says nothing
			ours, _ := w.figure(r, "tickless")
			theirs, _ := w.figure(r, r.rival())
			undecided = number(best) == number(ours) || number(best) == number(theirs)
		}
		fmt.Fprintf(b, "| %s |", w.title)
		for _, impl := range impls {
			v, ok := w.figure(r, impl)
			switch {
			case !ok:
				b.WriteString(" |")
			case !w.plain && !undecided && w.competes(r, impl) && number(v) == number(best):
				fmt.Fprintf(b, " **%s**%s |", number(v), w.beside(r, impl))
			default:
				fmt.Fprintf(b, " %s%s |", number(v), w.beside(r, impl))
			}
		}
		b.WriteString(w.ratioCells(r) + "\n")
	}
}

// ratioCells returns the two cells of a row's ratios.
func (w row) ratioCells(r *results) string {
	of, ofMeans := w.ratios(r)
	return strings.ReplaceAll(" "+of+" | "+ofMeans+" |", "  ", " ")
}

// ratios returns what ours is of the rival's: of the medians, and of the means if both have
// several runs. Where there is none it is empty.
func (w row) ratios(r *results) (of, ofMeans string) {
	if w.plain {
		return "", ""
	}
	ours, ok1 := r.median(w.key, "tickless")
	theirs, ok2 := r.median(w.key, r.rival())
	if ok1 && ok2 && hasRatio(ours, theirs) {
		of = ratio(ours / theirs)
	}
	ours, ok1 = r.mean(w.key, "tickless")
	theirs, ok2 = r.mean(w.key, r.rival())
	if ok1 && ok2 && hasRatio(ours, theirs) {
		ofMeans = ratio(ours / theirs)
	}
	return of, ofMeans
}

// undecided reports whether by the medians ours is better than the rival's, and worse by
// the means, or the other way round.
func (w row) undecided(r *results) bool {
	if of, ofMeans := w.ratios(r); of == "" || ofMeans == "" {
		return false
	}
	ours, _ := r.median(w.key, "tickless")
	theirs, _ := r.median(w.key, r.rival())
	ourMean, _ := r.mean(w.key, "tickless")
	theirMean, _ := r.mean(w.key, r.rival())
	return (ours-theirs)*(ourMean-theirMean) < 0
}

// hasRatio reports whether there is a ratio of two figures: not of two that are
// written as 0.
//
// Nor is there one of less than nothing, which is what a difference of two measurements
// may come to.
func hasRatio(ours, theirs float64) bool {
	return ours >= 0 && theirs > 0 && (number(ours) != "0" || number(theirs) != "0")
}

// alone reports whether a row is of one implementation, or of one and what is out of
// competition.
func (w row) alone(r *results, impls []string) bool {
	n := 0
	for _, impl := range impls {
		if _, ok := r.median(w.key, impl); ok && !apart(impl) {
			n++
		}
	}
	return n < 2
}

// drowned reports whether a control takes more than our timers in one of its runs, or
// anybody less than nothing: then what differs between runs is larger than what is measured.
func (w row) drowned(r *results) bool {
	ours, ok := r.median(w.key, "tickless")
	return ok && slices.ContainsFunc(r.impls, func(impl string) bool {
		v, ok := r.median(w.key, impl)
		return ok && (apart(impl) && r.mostOf(w.key, impl) > ours || v < 0 && !slices.Contains(lateness, w.key.unit))
	})
}

// lateness are the units of how late timers were.
var lateness = []string{"p50-ms", "p99-ms", "p99.9-ms", "max-ms", "last-ms", "late-ms", "worst-ms"}

// competes reports whether impl can be the best of a row. A control cannot, nor can, of
// how late timers were, who fired some of them early or lost some; nor, of CPU time and
// switches, who may fire them later than the others, with a slack.
func (w row) competes(r *results, impl string) bool {
	if apart(impl) {
		return false
	}
	if impl == "tickless-slack" {
		return w.key.workload == "ExpirySlack"
	}
	if !slices.Contains(lateness, w.key.unit) {
		return true
	}
	return !slices.ContainsFunc([]string{"early", "lost"}, func(mishap string) bool {
		return r.mostOf(key{w.key.workload, w.key.params, mishap}, impl) > 0
	})
}

// best returns the best figure of a row.
func (w row) best(r *results, impls []string) float64 {
	best, better := math.Inf(1), func(a, b float64) float64 { return min(a, b) }
	if w.higher {
		best, better = 0, func(a, b float64) float64 { return max(a, b) }
	}
	for _, impl := range impls {
		// To be late by less than nothing is no merit.
		if v, ok := w.figure(r, impl); ok && v >= 0 && w.competes(r, impl) {
			best = better(best, v)
		}
	}
	return best
}

// rival is the implementation that the ratios compare ours with.
func (r *results) rival() string {
	if r.config["mode"] == redis {
		return "asynq-tuned"
	}
	return "time"
}

// runs says of how many runs the table's medians are.
func (t table) runs(r *results, impls []string) string {
	var counts []string // in the order of impls
	for _, impl := range impls {
		least, most := math.MaxInt, 0
		for _, w := range t.rows {
			if n := len(r.samples[w.key][impl]); n > 0 {
				least, most = min(least, n), max(most, n)
			}
		}
		count := strconv.Itoa(most)
		if least < most {
			count = strconv.Itoa(least) + " to " + count
		}
		counts = append(counts, count)
	}
	common := ""
	for _, c := range counts {
		if occurrences(counts, c) > occurrences(counts, common) {
			common = c
		}
	}
	said, others := "Medians of "+common+" runs", "; of "
	if common == "1" {
		said, others = "Single runs", "; medians of "
	}
	for i, c := range counts {
		if c == common || slices.Contains(counts[:i], c) {
			continue
		}
		var of []string
		for k := range impls {
			if counts[k] == c {
				of = append(of, impls[k])
			}
		}
		said += others + c + " for " + strings.Join(of, ", ")
	}
	return said + "."
}

func occurrences(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// ratio writes v with two digits after the point, or more if they would be zeros.
func ratio(v float64) string {
	if v > 0 && v < 0.01 {
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// number writes v with three digits, or all of those before the point.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	s := strconv.FormatFloat(v, 'f', min(digits, 3), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	whole, fraction, point := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		return sign + whole + "." + fraction
	}
	return sign + whole
}

// gallery shows the charts that are named, or all if none are, from a directory.
func gallery(charts []chart, dir string, names []string) string {
	var b strings.Builder
	for _, c := range charts {
		if len(names) == 0 || slices.Contains(names, c.name) {
			fmt.Fprintf(&b, "\n![%s](%s/%s.svg)\n", c.title, dir, c.name)
		}
	}
	return b.String()
}
