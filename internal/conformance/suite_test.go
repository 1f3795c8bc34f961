package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rewriting changes a test file so that it tests another package.
type rewriting func(t *testing.T, text string) string

// buildSuite rewrites the toolchain's tests of standard package pkg as tests of the
// package in dir. It returns the path of the binary. It skips the test if
// TICKLESS_CONFORMANCE is off.
func buildSuite(t *testing.T, pkg, dir string, files map[string]rewriting) (binary string) {
	t.Helper()
	if os.Getenv("TICKLESS_CONFORMANCE") == "off" {
		t.Skip("this test must run alone on the machine: make test and make race run it")
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	src := filepath.Join(strings.TrimSpace(string(out)), "src", pkg)
	here, err := os.Getwd()
	require.NoError(t, err)

	// The rewritten tests exist only in an overlay: no file of the repository is written.
	work := t.TempDir()
	replace := map[string]string{}
	for name, rewrite := range files {
		text, err := os.ReadFile(filepath.Join(src, name))
		require.NoError(t, err, "the toolchain's sources are needed")
		file := filepath.Join(work, name)
		require.NoError(t, os.WriteFile(file, []byte(rewrite(t, string(text))), 0o600))
		replace[filepath.Join(here, filepath.FromSlash(dir), name)] = file
	}
	overlay := filepath.Join(work, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	binary = filepath.Join(work, "suite.test")
	args := []string{"test", "-c", "-vet=off", "-o", binary, "-overlay=" + overlay}
	if raceEnabled {
		args = append(args, "-race")
	}
	log, err := exec.Command("go", append(args, "./"+dir)...).CombinedOutput()
	require.NoError(t, err, "%s", log)
	return binary
}
