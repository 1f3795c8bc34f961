// Package faults writes the tables of fault cases, FAULTS.md, from the tests that are the
// cases.
//
// A case's row says FAILED from its begin on, and ok once the test is over, after its
// last assertion and all that it has deferred: one that panics, hangs or ends the program
// has failed.
package faults

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tickless/tickless/durable/internal/machine"
)

const (
	tableBegin = "<!-- cases: begin (make chaos writes this) -->\n"
	tableEnd   = "<!-- cases: end -->"
	noNumbers  = "| | | | | | |"
	heading    = "| case | what happened | acknowledged | lost | duplicates | early | leases that ran out | dead letters | repairs needed | late p50 / max | outcome |\n" +
		"|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n"
)

type report struct {
	path string
	// whole is whether all cases run, so that what is there of others is removed.
	whole bool

	mu   sync.Mutex
	rows map[string]string
	// describe are what cases have to say about themselves when they end.
	describe map[string]func() (what, numbers string)
	// sums are the cases whose subtests have no rows of their own.
	sums []string
}

var cases = report{rows: make(map[string]string), describe: make(map[string]func() (string, string))}

// Started says that a case has begun. It comes first in each, before servers are
// started, and does nothing the second time.
func Started(t *testing.T) { cases.started(t) }

// StartedAll is Started for a case that has one row for all its subtests.
func StartedAll(t *testing.T) {
	Started(t)
	cases.mu.Lock()
	defer cases.mu.Unlock()
	cases.sums = append(cases.sums, t.Name()+"/")
}

// Describe sets where a case's row comes from when it ends.
func Describe(t *testing.T, row func() (what, numbers string)) {
	cases.mu.Lock()
	defer cases.mu.Unlock()
	cases.describe[t.Name()] = row
}

// A testCase is what a report needs of a *testing.T.
type testCase interface {
	Name() string
	Failed() bool
	Cleanup(func())
	Error(...any)
}

func (r *report) started(t testCase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows[t.Name()] != "" || slices.ContainsFunc(r.sums, func(sum string) bool { return strings.HasPrefix(t.Name(), sum) }) {
		return
	}
	begin := time.Now()
	r.setLocked(t, "it did not end", "", "FAILED")
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		what, numbers := "", ""
		if row := r.describe[t.Name()]; row != nil {
			what, numbers = row()
		}
		outcome := "ok"
		if t.Failed() || panicking() {
			outcome = "FAILED"
		}
		r.setLocked(t, what+" ("+time.Since(begin).Round(time.Second).String()+")", numbers, outcome)
	})
}

// panicking reports whether the goroutine runs what a panic leaves to be run: package
// testing does not say before that a case which panics has failed.
func panicking() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for {
		f, more := frames.Next()
		if f.Function == "runtime.gopanic" {
			return true
		}
		if !more {
			return false
		}
	}
}

func (r *report) setLocked(t testCase, what, numbers, outcome string) {
	name := strings.TrimPrefix(t.Name(), "TestFault_")
	r.rows[t.Name()] = fmt.Sprintf("| %s | %s | %s | %s |", name, what, cmp.Or(numbers, noNumbers), outcome)
	if err := r.write(); err != nil {
		t.Error("writing the report: ", err)
	}
}

// write puts the rows into the table of the file, in place of those that it has of
// the same cases.
func (r *report) write() error {
	if r.path == "" {
		return nil
	}
	text, err := os.ReadFile(r.path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), tableBegin)
	old, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the table", r.path)
	}
	all := make(map[string]string)
	name := func(row string) string { return strings.TrimSpace(strings.SplitN(row, "|", 3)[1]) }
	for row := range strings.Lines(old) {
		if !r.whole && strings.HasPrefix(row, "| ") && name(row) != "case" {
			all[name(row)] = strings.TrimSpace(row)
		}
	}
	for _, row := range r.rows {
		all[name(row)] = row
	}
	var list []string
	failed := 0
	for _, row := range all {
		list = append(list, row)
		if !strings.HasSuffix(row, "| ok |") {
			failed++
		}
	}
	slices.Sort(list)
	var b strings.Builder
	fmt.Fprintf(&b, "\nLast written %s, at %s. %d cases, %d FAILED.\n\n", time.Now().UTC().Format(time.DateOnly), machine.String(), len(list), failed)
	b.WriteString(heading)
	for _, row := range list {
		b.WriteString(row + "\n")
	}
	b.WriteString("\n")
	return os.WriteFile(r.path, []byte(head+tableBegin+b.String()+tableEnd+tail), 0o644)
}

// Open has the rows written into the file that TICKLESS_FAULTS names, if it does. A run
// of all cases, those that take long too, removes what is there of others. TestMain calls
// it after flag.Parse.
func Open() {
	cases.path = os.Getenv("TICKLESS_FAULTS")
	cases.whole = os.Getenv("TICKLESS_CHAOS") == "long" && flag.Lookup("test.run").Value.String() == ""
}

// Long skips what takes long, unless TICKLESS_CHAOS is long.
func Long(t *testing.T) {
	t.Helper()
	if os.Getenv("TICKLESS_CHAOS") != "long" {
		t.Skip("takes long: make chaos runs it")
	}
}

// Numbers are the columns in the middle of a row.
type Numbers struct {
	Acknowledged, Lost, Duplicates, Early int
	Crashed                               int // leases that ran out
	Dead, Repaired                        int
	Late, Worst                           time.Duration // half of the tasks, and all
}

func (n Numbers) String() string {
	return fmt.Sprintf("%d | %d | %d | %d | %d | %d | %d | %v / %v",
		n.Acknowledged, n.Lost, n.Duplicates, n.Early, n.Crashed, n.Dead, n.Repaired, Short(n.Late), Short(n.Worst))
}

// Short writes a time for a row.
func Short(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
}
