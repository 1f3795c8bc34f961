//go:build unix

package chaos

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The report is the table of FAULTS.md. A case's row says FAILED from its begin on,
// and ok once the test is over, after its last assertion and all that it has
// deferred: one that panics, hangs or ends the program has failed.

const (
	tableBegin = "<!-- cases: begin (make chaos writes this) -->\n"
	tableEnd   = "<!-- cases: end -->"
	noNumbers  = "| | | | | | |"
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

var faults = report{rows: make(map[string]string), describe: make(map[string]func() (string, string))}

// started says that a case has begun. It comes first in each, before servers are
// started, and does nothing the second time.
func started(t *testing.T) { faults.started(t) }

// startedAll is started for a case that has one row for all its subtests.
func startedAll(t *testing.T) {
	started(t)
	faults.mu.Lock()
	defer faults.mu.Unlock()
	faults.sums = append(faults.sums, t.Name()+"/")
}

// describe sets where a case's row comes from when it ends.
func describe(t *testing.T, row func() (what, numbers string)) {
	faults.mu.Lock()
	defer faults.mu.Unlock()
	faults.describe[t.Name()] = row
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
	fmt.Fprintf(&b, "\nLast written %s; %s %s/%s, %d procs. %d cases, %d FAILED.\n\n", time.Now().UTC().Format(time.DateOnly),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), len(list), failed)
	b.WriteString("| case | what happened | acknowledged | lost | duplicates | early | leases that ran out | dead letters | repairs needed | late p50 / max | outcome |\n")
	b.WriteString("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n")
	for _, row := range list {
		b.WriteString(row + "\n")
	}
	b.WriteString("\n")
	return os.WriteFile(r.path, []byte(head+tableBegin+b.String()+tableEnd+tail), 0o644)
}

func newReport() {
	faults.path = os.Getenv("TICKLESS_FAULTS")
	faults.whole = os.Getenv("TICKLESS_CHAOS") == "long" && flag.Lookup("test.run").Value.String() == ""
}

// fakeCase is a case that ends when a test says so.
type fakeCase struct {
	*testing.T
	name    string
	failed  bool
	cleanup func()
}

func (f *fakeCase) Name() string     { return f.name }
func (f *fakeCase) Failed() bool     { return f.failed }
func (f *fakeCase) Cleanup(g func()) { f.cleanup = g }

// A table that cannot say FAILED would be worth nothing.
func TestReport_SaysFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "FAULTS.md")
	require.NoError(t, os.WriteFile(path, []byte("before\n"+tableBegin+"| Old | x | ok |\n"+tableEnd+"\nafter\n"), 0o644))
	for _, whole := range []bool{false, true} {
		r := report{path: path, whole: whole, rows: make(map[string]string),
			describe: map[string]func() (string, string){"TestFault_A": func() (string, string) { return "a", "1 | 2" }}}
		row := func(of string) string {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(string(text), "before\n") && strings.HasSuffix(string(text), "\nafter\n"))
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "| "+of+" |") {
					return strings.TrimSpace(line)
				}
			}
			return ""
		}
		a, b := &fakeCase{T: t, name: "TestFault_A"}, &fakeCase{T: t, name: "TestFault_B/b"}
		r.started(a)
		require.Equal(t, "| A | it did not end | "+noNumbers+" | FAILED |", row("A"), "a program that ends here has failed")
		a.cleanup()
		require.Equal(t, "| A | a (0s) | 1 | 2 | ok |", row("A"))
		r.started(b)
		b.failed = true // an assertion after all that was counted
		b.cleanup()
		require.Equal(t, "| B/b |  (0s) | "+noNumbers+" | FAILED |", row("B/b"))
		require.Equal(t, whole, row("Old") == "", "a run of all cases leaves out what is no case any more")
	}
}

// failEnv says how TestFault_ThatFails ends; without it there is no such case.
const failEnv = "TICKLESS_CHAOS_FAILS"

func TestFault_ThatFails(t *testing.T) {
	how := os.Getenv(failEnv)
	if how == "" {
		t.Skip("TestReport_OfAProgram runs it")
	}
	startedAll(t)
	describe(t, func() (what, numbers string) { return "counted before the last assertion", "1 | 2" })
	t.Cleanup(func() {
		if how == "cleanup" {
			t.Error("what ends with the case fails")
		}
	})
	switch how {
	case "assertion":
		require.Fail(t, "the last assertion")
	case "subtest":
		t.Run("1", func(t *testing.T) {
			started(t)
			t.Error("one of the runs")
		})
	case "panic":
		panic("as asked for")
	case "exit":
		os.Exit(0)
	case "hang":
		select {}
	}
}

// A program that runs a case which fails, in whatever way, writes FAILED.
func TestReport_OfAProgram(t *testing.T) {
	for how, outcome := range map[string]string{
		"nothing": "ok", "assertion": "FAILED", "subtest": "FAILED", "cleanup": "FAILED", "panic": "FAILED", "exit": "FAILED", "hang": "FAILED",
	} {
		path := filepath.Join(t.TempDir(), "FAULTS.md")
		require.NoError(t, os.WriteFile(path, []byte(tableBegin+tableEnd), 0o644))
		cmd := exec.Command(os.Args[0], "-test.run=^TestFault_ThatFails$", "-test.timeout=1s")
		cmd.Env = append(os.Environ(), failEnv+"="+how, "TICKLESS_FAULTS="+path, "TICKLESS_CHAOS=")
		err := cmd.Run()
		if how == "nothing" {
			require.NoError(t, err)
		} else if how != "exit" {
			require.Error(t, err, how)
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), "| "+outcome+" |\n", how)
		require.Equal(t, 1, strings.Count(string(text), "| ThatFails |"), how)
		require.NotContains(t, string(text), "ThatFails/")
	}
}
