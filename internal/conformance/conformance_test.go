package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// outOfReach matches the tests that no library outside the runtime can pass: a pending
// timer must be garbage if nothing refers to it.
const outOfReach = "^TestTimerGC$/^(NewTimer|NewTicker)$"

// TestConformance runs the toolchain's sleep_test.go and tick_test.go against package
// timer. TICKLESS_CONFORMANCE=long runs them five times and without -test.short.
// TICKLESS_CONFORMANCE=off skips them.
func TestConformance(t *testing.T) {
	binary := buildSuite(t, "time", "suite", map[string]rewriting{
		"sleep_test.go": rewrite,
		"tick_test.go":  rewrite,
	})
	args := []string{"-test.v", "-test.skip=" + outOfReach}
	if os.Getenv("TICKLESS_CONFORMANCE") == "long" {
		args = append(args, "-test.count=5")
	} else {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = filepath.Dir(binary)
	log, err := cmd.CombinedOutput()
	for _, line := range regexp.MustCompile(`(?m)^--- .*|^panic.*`).FindAllString(string(log), -1) {
		t.Log(line)
	}
	require.NoError(t, err, "%s", log)
	passed := regexp.MustCompile(`(?m)^--- PASS: (\w+)`).FindAllStringSubmatch(string(log), -1)
	require.GreaterOrEqual(t, len(passed), 30, "the suite has shrunk: %s", log)
}

// rewrite makes a test file of package time import this package instead.
func rewrite(t *testing.T, text string) string {
	for _, r := range []struct{ from, to string }{
		{"package time_test", "package suite_test"},
		{`. "time"`, `. "github.com/tickless/tickless/internal/conformance"`},
	} {
		require.Contains(t, text, r.from)
		text = strings.Replace(text, r.from, r.to, 1)
	}
	// Replace what only the standard library may use: internal/testenv, which skips flaky
	// tests, and a variable of package runtime.
	text = strings.Replace(text, "\t\"internal/testenv\"\n", "", 1)
	text = strings.Replace(text, "\t_ \"unsafe\" // for go:linkname\n", "", 1)
	text = strings.Replace(text, "//go:linkname haveHighResSleep runtime.haveHighResSleep\nvar haveHighResSleep bool", "var haveHighResSleep = true", 1)
	text = regexp.MustCompile(`(?m)^\s*testenv\.SkipFlaky\(.*\)$`).ReplaceAllString(text, "")
	// A documented difference: package time hides the buffer of a timer's channel.
	text = strings.ReplaceAll(text, "if l, c := len(C), cap(C); l != 0 || c != 0 {", "if l, c := 0, 0; l != c {")
	require.NotContains(t, text, "testenv")
	require.NotContains(t, text, "//go:linkname")
	return text
}
