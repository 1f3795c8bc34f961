package upstream

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// CheckPanicEnds requires that the program ends with what f panics with, wherever it
// does: it runs the test again in a process of its own, where f is called.
func CheckPanicEnds(t *testing.T, want string, f func()) {
	t.Helper()
	const variable = "TICKLESS_PANICS"
	if os.Getenv(variable) == t.Name() {
		f()
		select {} // until it has ended
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: "+want) {
		t.Errorf("the program ended with %v:\n%s", err, out)
	}
}
