package faults

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	flag.Parse()
	Open()
	os.Exit(m.Run())
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
		require.Regexp(t, `^\| A \| a \([0-9hms]+\) \| 1 \| 2 \| ok \|$`, row("A"))
		r.started(b)
		b.failed = true // an assertion after all that was counted
		b.cleanup()
		require.Regexp(t, `^\| B/b \|  \([0-9hms]+\) \| `+regexp.QuoteMeta(noNumbers)+` \| FAILED \|$`, row("B/b"))
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
	StartedAll(t)
	Describe(t, func() (what, numbers string) { return "counted before the last assertion", "1 | 2" })
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
			Started(t)
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
		limit := time.Minute
		if how == "hang" {
			limit = time.Second
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestFault_ThatFails$", fmt.Sprint("-test.timeout=", limit))
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
