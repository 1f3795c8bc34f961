package diskstore_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tickless/tickless/durable/internal/machine"
)

// faults are the rows that FAULTS.md has of the cases that were run, and the names of those
// that have begun and have not said what they did.
var faults struct {
	sync.Mutex
	rows  []string
	begun []string
}

// begins has FAULTS.md say that a case has failed, until it has said what it did.
func begins(t *testing.T) {
	faults.Lock()
	defer faults.Unlock()
	faults.begun = append(faults.begun, t.Name())
	if err := writeFaults(); err != nil {
		t.Error("writing FAULTS.md:", err)
	}
	t.Cleanup(func() {
		faults.Lock()
		defer faults.Unlock()
		if t.Skipped() {
			faults.begun = slices.DeleteFunc(faults.begun, func(name string) bool { return name == t.Name() })
		}
		if err := writeFaults(); err != nil {
			t.Error("writing FAULTS.md:", err)
		}
	})
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
		faults.rows = append(faults.rows, faultRow(t.Name(), what, outcome))
		name, _, _ := strings.Cut(t.Name(), "/")
		faults.begun = slices.DeleteFunc(faults.begun, func(begun string) bool { return begun == name })
	})
}

func faultRow(name, what, outcome string) string {
	return fmt.Sprintf("| %s | %s | %s |\n", strings.TrimPrefix(name, "Test"), what, outcome)
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
	rows := slices.Clone(faults.rows)
	for _, name := range faults.begun {
		rows = append(rows, faultRow(name, "it did not end", "FAILED"))
	}
	slices.Sort(rows)
	failed := 0
	for _, row := range rows {
		if !strings.HasSuffix(row, "| ok |\n") {
			failed++
		}
	}
	text := fmt.Sprintf("\nLast written %s, at %s. %d rows, %d FAILED.\n\n| case | what happened | outcome |\n|---|---|---|\n%s\n",
		time.Now().UTC().Format(time.DateOnly), machine.String(), len(rows), failed, strings.Join(rows, ""))
	return os.WriteFile(name, []byte(head+begin+text+end+tail), 0o600)
}
