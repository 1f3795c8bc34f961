package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/internal/conformance/contexts"
)

// TestContexts runs the toolchain's tests of package context, but makes every context
// with a deadline with package deadline. Further runs insert another context between each
// such context and its parent.
func TestContexts(t *testing.T) {
	binary := buildSuite(t, "context", "contexts/suite", map[string]rewriting{
		"context_test.go":   rewriteLinkage,
		"x_test.go":         rewriteContexts,
		"afterfunc_test.go": rewriteImport,
		"benchmark_test.go": rewriteImport,
		"net_test.go":       rewriteImport,
	})
	count := "1"
	if os.Getenv("TICKLESS_CONFORMANCE") == "long" {
		count = "20"
	}
	for _, between := range []string{"nothing", "context", "deadline", "other"} {
		t.Run("between="+between, func(t *testing.T) {
			args := []string{"-test.v", "-test.count=" + count, "-test.timeout=60s"}
			switch {
			case between == "other":
				// In these tests only a context's AfterFunc method shows that the context
				// has ended. The inserted context does not have that method.
				args = append(args, "-test.skip=^(TestAllocs|TestCustomContextAfterFunc.*Timeout)$")
			case between != "nothing" || raceEnabled:
				// The inserted context allocates, and so does the race detector.
				args = append(args, "-test.skip=^TestAllocs$")
			default:
				args = append(args, "-test.bench=.", "-test.benchtime=1x")
			}
			cmd := exec.Command(binary, args...)
			cmd.Dir = filepath.Dir(binary)
			cmd.Env = append(os.Environ(), contexts.InsertBetweenEnv+"="+between)
			log, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", log)
			passed := regexp.MustCompile(`(?m)^--- PASS: (\w+)`).FindAllStringSubmatch(string(log), -1)
			// Go 1.25 has 36 tests, and Go 1.26 one more. At most three are skipped
			// above.
			require.GreaterOrEqual(t, len(passed), 33, "the suite has shrunk: %s", log)
		})
	}
}

// rewriteImport makes a test file of package context import package contexts.
func rewriteImport(t *testing.T, text string) string {
	require.Regexp(t, `(?m)^\t(\. )?"context"$`, text)
	return regexp.MustCompile(`(?m)^\t(\. )?"context"$`).ReplaceAllStringFunc(text, func(line string) string {
		if strings.Contains(line, ".") {
			return "\t. \"github.com/tickless/tickless/internal/conformance/contexts\""
		}
		return "\tcontext \"github.com/tickless/tickless/internal/conformance/contexts\""
	})
}

// rewriteContexts removes what only the standard library may use, and what depends on
// package context's own types.
func rewriteContexts(t *testing.T, text string) string {
	text = rewriteImport(t, text)
	text = cut(t, text, "\t\"internal/asan\"\n", "\t\"math/rand\"")
	text = cut(t, text, "\tif asan.Enabled {", "\tbg := Background()")
	text = cut(t, text, "func TestCancelRemoves(", "// The following are regular tests")
	// The text of a context contains the text of the inserted context.
	require.Equal(t, 2, strings.Count(text, `"context.Background.WithDeadline("`))
	text = strings.ReplaceAll(text, `"context.Background.WithDeadline("`, `"context.Background."`)
	return text
}

// rewriteLinkage keeps those internal tests of package context that work from outside the
// package.
func rewriteLinkage(t *testing.T, text string) string {
	text = strings.Replace(text, "package context\n", "package context_test\n", 1)
	text = strings.Replace(text, "import (\n", "import (\n\t. \"github.com/tickless/tickless/internal/conformance/contexts\"\n", 1)
	text = cut(t, text, "const veryLongDuration", "func XTestParentFinishesChild")
	text = cut(t, text, "\t// The parent's children should contain", "\tcancel()\n\n\tpc.mu.Lock()")
	text = cut(t, text, "\tpc.mu.Lock()", "\t// parent and children should all be finished.")
	text = cut(t, text, "\t\tcc := child.(*cancelCtx)", "\t\tcancel()\n\n\t\tif pcok {")
	text = cut(t, text, "\t\tif pcok {", "\t\t// child should be finished.")
	i := strings.Index(text, "func XTestCancelRemoves(")
	require.Positive(t, i)
	return text[:i]
}

// cut finds the first begin in text, and the next end. It removes begin and the text up
// to end.
func cut(t *testing.T, text, begin, end string) string {
	i := strings.Index(text, begin)
	require.GreaterOrEqual(t, i, 0, "%s", begin)
	j := strings.Index(text[i:], end)
	require.Positive(t, j, "%s", end)
	return text[:i] + text[i+j:]
}
