package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVettool runs go vet with the tool, as users do.
func TestVettool(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program; TestLostCancel runs the same code")
	}
	tool := filepath.Join(t.TempDir(), "vettool")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.sum": string(sums),
		"go.mod": "module example.com/m\n\ngo 1.25.0\n\nrequire github.com/tickless/tickless v0.0.0\n\nreplace github.com/tickless/tickless => " + root + "\n",
		"m.go": `package m

import (
	"context"

	"github.com/tickless/tickless/deadline"
)

func f() context.Context {
	ctx, _ := deadline.WithTimeout(context.Background(), 1)
	return ctx
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+tool, "./...")
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "m.go:10:7: the cancel function returned by context.WithTimeout should be called") {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}
