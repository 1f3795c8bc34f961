package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestVettool runs go vet with the analyzer, as users do.
func TestVettool(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program; TestAnalyzer_Golden runs the same code")
	}
	tool := filepath.Join(t.TempDir(), "vettool")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+tool, "./...")
	cmd.Dir = "../project/testdata/module"
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("go vet reports nothing")
	}
	for _, want := range []string{
		"time.NewTicker can be timer.NewTicker (each call)",
		"time.AfterFunc stays: Retry is exported: another package may use it",
		"context.WithTimeout can be deadline.WithTimeout",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("go vet does not say %q:\n%s", want, out)
		}
	}

	if strings.HasPrefix(runtime.Version(), "go1.25") {
		return // its go vet has no -fix
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "m.go")
	for name, text := range map[string]string{
		filepath.Join(dir, "go.mod"): "module example.com/m\n\ngo 1.25.0\n",
		file:                         "package m\n\nimport \"time\"\n\nfunc f() { time.AfterFunc(1, f) }\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd = exec.CommandContext(t.Context(), "go", "vet", "-vettool="+tool, "-fix", "./...")
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	out, err = cmd.CombinedOutput()
	got, _ := os.ReadFile(file)
	if err != nil || !strings.Contains(string(got), "timer.AfterFunc(1, f)") {
		t.Errorf("after go vet -fix the file is %s: %v\n%s", got, err, out)
	}
}
