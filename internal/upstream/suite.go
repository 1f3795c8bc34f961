package upstream

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// A Suite is test files of another module, and what is changed about them.
type Suite struct {
	Module string   // its path; the tested package's go.mod requires it
	Files  []string // below the module's folder
	// Replace are pairs of a text and what takes its place, for
	// strings.NewReplacer.
	Replace []string
	// Args are further arguments of go test.
	Args []string
	// Skip are the tests that are left out, each with the reason.
	Skip map[string]string
	// Also is the source of a file that the tests need besides.
	Also string
}

var declared = regexp.MustCompile(`(?m)^func ((?:Test|Example)[A-Za-z0-9_]*)\(`)

// Run runs the suite as tests of the package in the current folder, whose own tests
// are put aside. Each test must pass.
func (s Suite) Run(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it compiles the tests of another module")
	}
	source := strings.TrimSpace(string(command(t, "list", "-m", "-f", "{{.Dir}}", s.Module)))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	overlay := make(map[string]string)
	own, err := filepath.Glob(filepath.Join(here, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range own {
		overlay[file] = "" // as if it were not there
	}
	temp := t.TempDir()
	add := func(text string) {
		name := fmt.Sprintf("upstream_%d_test.go", len(overlay))
		if err := os.WriteFile(filepath.Join(temp, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(here, name)] = filepath.Join(temp, name)
	}

	tests := make(map[string]bool)
	for _, file := range s.Files {
		text, err := os.ReadFile(filepath.Join(source, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			if name := string(m[1]); name != "TestMain" && s.Skip[name] == "" {
				tests[name] = true
			}
		}
		add(strings.NewReplacer(s.Replace...).Replace(string(text)))
	}
	if s.Also != "" {
		add(s.Also)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Skip)) {
		t.Logf("left out: %s: %s", name, s.Skip[name])
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(file, list, 0o644); err != nil {
		t.Fatal(err)
	}

	names := slices.Sorted(maps.Keys(tests))
	args := []string{"test", "-overlay", file, "-count=1", "-v", "-vet=off", "-timeout=2m", "-run=^(" + strings.Join(names, "|") + ")$"}
	if raceEnabled() {
		args = append(args, "-race")
	}
	args = append(args, s.Args...)
	out := string(command(t, append(args, ".")...))
	for _, name := range names {
		if !strings.Contains(out, "--- PASS: "+name+" (") {
			t.Errorf("%s has not passed", name)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	t.Logf("%d of %s's tests have passed", len(names), s.Module)
}

// raceEnabled reports whether this test runs under the race detector.
func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// command runs the go command and returns what it printed.
func command(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", args[0], err, out, stderr.String())
	}
	return out
}
