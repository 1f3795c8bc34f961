package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const asProgram = "TICKLESS_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Every measurement can be made, and has its line in the table.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("its processes would take half a minute under the race detector")
	}
	t.Setenv(asProgram, "1")
	var out bytes.Buffer
	args := []string{"--runs", "1", "--time", "20ms", "--tasks", "500", "--dir", t.TempDir()}
	here := sideNames()
	if _, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server")); err != nil {
		here = slices.DeleteFunc(here, func(name string) bool { return name == "redis" })
	}
	require.NoError(t, run(append(args, "--sides", strings.Join(here, ",")), &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, w := range works {
		for _, r := range w.rows {
			i := strings.Index(out.String(), "| "+r.title)
			require.GreaterOrEqual(t, i, 0, r.title)
		}
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "| scheduled") {
			for i, cell := range strings.Split(line, "|")[2:][:len(here)] {
				require.NotEmpty(t, strings.TrimSpace(cell), here[i])
			}
		}
	}
}

func TestRun_CalledWrongly(t *testing.T) {
	for args, want := range map[string]string{
		"--sides disc":    `no side "disc"`,
		"--work nothing":  `no workload "nothing"`,
		"--runs 0":        "must be positive",
		"--child nothing": `no measurement "nothing"`,
	} {
		require.ErrorContains(t, run(strings.Fields(args), new(bytes.Buffer)), want)
	}
}

func TestThousands(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		require.Equal(t, want, thousands(x, 0))
	}
	require.Equal(t, "1,234.50", thousands(1234.5, 2))
}

// The table goes between its markers, and what a page says besides stays.
func TestPublish(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.md")
	require.NoError(t, publish(path, "a table\n"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("before\n"+string(text)+"after\n"), 0o644))
	require.NoError(t, publish(path, "another\n"))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Regexp(t, `(?s)^before\n.*begin.*-->\n\nanother\n\n<!-- .*end -->\nafter\n$`, string(text))
	require.NotContains(t, string(text), "a table")

	require.NoError(t, os.WriteFile(path, []byte("no markers\n"), 0o644))
	require.ErrorContains(t, publish(path, "a table\n"), "there is no <!-- stores: begin")
}

// Each run has a line that benchstat reads.
func TestRaw(t *testing.T) {
	text := raw(results{
		key("file", "burst", "rate"): {70000, 71234.5},
		key("file", "late", "p99"):   {1.25},
	})
	procs := runtime.GOMAXPROCS(0)
	require.Contains(t, text, fmt.Sprintf("BenchmarkStores/work=burst/impl=file-%d 1 71234 tasks/s\n", procs))
	require.Contains(t, text, fmt.Sprintf("BenchmarkStores/work=late/impl=file-%d 1 1.25 p99-ms\n", procs))
}
