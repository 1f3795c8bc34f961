package diskstore_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// faults are the rows that FAULTS.md has of the cases that were run.
var faults struct {
	sync.Mutex
	rows []string
}

// note has FAULTS.md say what a case did, and how it ended.
func note(t *testing.T, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	t.Log(what)
	t.Cleanup(func() {
		outcome := "ok"
		if t.Failed() {
			outcome = "FAILED"
		}
		faults.Lock()
		defer faults.Unlock()
		faults.rows = append(faults.rows, fmt.Sprintf("| %s | %s | %s |\n", strings.TrimPrefix(t.Name(), "Test"), what, outcome))
	})
}

// writeFaults replaces the table in the file that TICKLESS_FAULTS names.
func writeFaults() error {
	name := os.Getenv("TICKLESS_FAULTS")
	if name == "" {
		return nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	const begin, end = "<!-- cases: begin (make chaos writes this) -->\n", "<!-- cases: end -->"
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the cases", name)
	}
	slices.Sort(faults.rows)
	text := fmt.Sprintf("\nLast written %s; %s %s/%s, %d procs.\n\n| case | what happened | outcome |\n|---|---|---|\n%s\n",
		time.Now().UTC().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), strings.Join(faults.rows, ""))
	return os.WriteFile(name, []byte(head+begin+text+end+tail), 0o600)
}
