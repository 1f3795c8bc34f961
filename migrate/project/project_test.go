package project_test

import (
	"bytes"
	"context"
	"errors"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tickless/tickless/migrate"
	"github.com/tickless/tickless/migrate/project"
)

// fixture copies testdata/module and returns the folder of the copy.
func fixture(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func load(t *testing.T, dir string, opts migrate.Options, patterns ...string) *project.Project {
	t.Helper()
	p, err := project.Load(t.Context(), project.Config{Dir: dir, Patterns: patterns, Env: env(), Options: opts})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// env is an environment in which the go command does not use this repository's workspace.
func env() []string { return append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod") }

func goCommand(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// leftReasons returns the first reason for each call that is not rewritten. Its keys are like
// "server.go time.After".
func leftReasons(p *project.Project) map[string]string {
	reasons := make(map[string]string)
	for _, s := range p.Report.Sites {
		if len(s.Left) > 0 {
			reasons[filepath.Base(s.Pos.Filename)+" "+s.From] = s.Left[0].Text
		}
	}
	return reasons
}

// TestProject_Fix rewrites the module in testdata and runs its tests with this library.
func TestProject_Fix(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles this library for another module")
	}
	dir := fixture(t)
	p := load(t, dir, migrate.Options{}, "./...")
	want := map[string]string{
		"server.go time.AfterFunc": "Retry is exported: another package may use it",
		"hook.go time.AfterFunc":   "AfterFunc is exported: another package may use it",
		"server.go time.After":     "timer.After is time.After, which cannot be stopped",
	}
	got := leftReasons(p)
	for site, reason := range want {
		if got[site] != reason {
			t.Errorf("%s: the reason is %q, want %q", site, got[site], reason)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d calls are not rewritten, want %d: %v", len(got), len(want), got)
	}
	if c := p.Counts(); c.Sites != 10 || c.Rewritten != 5 || c.Worth != 2 || c.Skipped != 1 || c.Left != 4 || c.Muted != 3 || c.Files != 3 {
		t.Errorf("wrong counts: %+v", c)
	}
	if p.Module != "example.com/fixture" {
		t.Errorf("module %s, want example.com/fixture", p.Module)
	}
	if err := p.Fix(); err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Changes() {
		if formatted, err := format.Source(c.New); err != nil || !bytes.Equal(formatted, c.New) {
			t.Errorf("%s is not formatted with gofmt: %v", c.Name, err)
		}
	}

	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644); err != nil {
		t.Fatal(err)
	}
	goCommand(t, dir, "mod", "edit", "-require=github.com/tickless/tickless@v0.0.0", "-replace=github.com/tickless/tickless="+root)
	goCommand(t, dir, "test", "-vet=off", "./...")
	goCommand(t, dir, "run", "./cmd/daemon")

	again := load(t, dir, migrate.Options{}, "./...")
	if len(again.Changes()) > 0 {
		t.Errorf("after a rewrite there is more to rewrite: %+v", again.Counts())
	}
}

func TestProject_ReportAndDiff(t *testing.T) {
	dir := fixture(t)
	p := load(t, dir, migrate.Options{}, "./...")
	var report, diff bytes.Buffer
	if err := errors.Join(p.WriteReport(&report), p.WriteDiff(&diff)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Worth it where very many are pending",
		"Worth it if the function runs very many times at a time:",
		"Not worth it: there are few at a time, or a goroutine waits for each; --all rewrites these too:",
		"server/http.go:10:8     time.AfterFunc -> timer.AfterFunc  each request or connection\n",
		"server/server.go:51:51  time.AfterFunc -> timer.AfterFunc  each object",
		"time.AfterFunc -> timer.AfterFunc",
		"Retry is exported: another package may use it (server/server.go:15:2)",
		"5 of 10 call sites can be rewritten, on 14 lines of 3 files; 1 not worth it; 4 left.",
		"Not counted: 3 call sites in tests; --tests rewrites these too.",
		"A rewrite gains nothing where few timers are pending",
	} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, report.String())
		}
	}
	for _, want := range []string{
		"--- a/server/server.go\n+++ b/server/server.go\n",
		"-	limit *time.Timer\n+	limit *timer.Timer\n",
	} {
		if !strings.Contains(diff.String(), want) {
			t.Errorf("the diff has no %q:\n%s", want, diff.String())
		}
	}
	before, _ := os.ReadFile("testdata/module/server/server.go")
	after, _ := os.ReadFile(filepath.Join(dir, "server/server.go"))
	if !bytes.Equal(before, after) {
		t.Error("the report has changed a file")
	}
}

// Only packages that the patterns match are rewritten.
func TestProject_OnlyNamedPackages(t *testing.T) {
	dir := fixture(t)
	p := load(t, dir, migrate.Options{}, "./server")
	for _, c := range p.Changes() {
		if !strings.HasPrefix(c.Name, filepath.Join(dir, "server")) {
			t.Errorf("%s is rewritten, but no pattern matches it", c.Name)
		}
	}
	if len(p.Changes()) != 2 {
		t.Errorf("%d files change, want 2", len(p.Changes()))
	}
}

func TestProject_Options(t *testing.T) {
	dir := fixture(t)
	for _, tt := range []struct {
		name      string
		opts      migrate.Options
		rewritten int
		muted     int
	}{
		{"tests", migrate.Options{Tests: true}, 6, 0},
		{"all", migrate.Options{All: true}, 6, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if c := load(t, dir, tt.opts, "./...").Counts(); c.Rewritten != tt.rewritten || c.Muted != tt.muted {
				t.Errorf("wrong counts: %+v", c)
			}
		})
	}
}

func TestProject_Refuses(t *testing.T) {
	dir := fixture(t)
	check := func(name, want string, patterns ...string) {
		t.Helper()
		_, err := project.Load(t.Context(), project.Config{Dir: dir, Patterns: patterns, Env: env()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	check("a missing package", "missing", "./missing")
	check("the standard library", "package time belongs to no module", "time")

	p := load(t, dir, migrate.Options{}, "./...")
	file := filepath.Join(dir, "server", "server.go")
	if err := os.WriteFile(file, []byte("package server\n\nvar x int = \"\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.Fix(); err == nil || !strings.Contains(err.Error(), "server.go has changed since it was loaded") {
		t.Errorf("Fix after a file was changed: %v", err)
	}
	check("a package that does not compile", "does not compile", "./...")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := project.Load(ctx, project.Config{Dir: dir, Env: env()}); err == nil {
		t.Error("Load with an ended context returned no error")
	}
}
