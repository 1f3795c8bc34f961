package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVettool runs go vet with the analyzer, as its users do.
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
		t.Error("go vet has nothing to say")
	}
	for _, want := range []string{
		"time.NewTicker can be timer.NewTicker (each call)",
		"time.AfterFunc is left: Retry is part of the API of package server",
		"context.WithTimeout is left: a test may run it inside a testing/synctest bubble",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("go vet does not say %q:\n%s", want, out)
		}
	}
}
