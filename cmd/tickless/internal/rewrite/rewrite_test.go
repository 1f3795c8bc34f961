package rewrite

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, clitest.UnderRoot(NewCommand)) }

func TestMigrate_Help(t *testing.T) {
	clitest.CheckHelp(t, "migrate", "--diff", "--fix", "--all", "--allow-dirty", "--tests", "--json", "go get")
}

func TestMigrate_CalledWrongly(t *testing.T) {
	clitest.CheckWrongCalls(t, "migrate", []clitest.WrongCall{
		{Args: []string{"--bogus"}, WantError: "--bogus"},
		{Args: []string{"--diff", "--fix"}, WantError: "--diff or --fix"},
		{Args: []string{"--diff", "--json"}, WantError: "--diff or --json"},
		{Args: []string{"--allow-dirty"}, WantError: "--fix"},
		{Args: []string{"--tests=maybe"}, WantError: "maybe"},
	})
}

// module creates a module with one source file and returns its folder.
func module(t *testing.T, source string) string {
	t.Helper()
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.25\n", "m.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	before = "package m\n\nimport \"time\"\n\nfunc f() { time.AfterFunc(1, f) }\n"
	after  = "package m\n\nimport \"github.com/tickless/tickless/timer\"\n\nfunc f() { timer.AfterFunc(1, f) }\n"
)

func TestMigrate_ReportDiffFix(t *testing.T) {
	dir := module(t, before)
	stdout, stderr, code := clitest.Run("migrate", "-C", dir, "./...")
	if code != cli.ExitPending || stderr != "" || !strings.Contains(stdout, "m.go:5:12  time.AfterFunc -> timer.AfterFunc") {
		t.Errorf("the report: exit code %d, %q, %q", code, stdout, stderr)
	}
	stdout, stderr, code = clitest.Run("migrate", "-C", dir, "--diff", "./...")
	if code != cli.ExitPending || stderr != "" || !strings.Contains(stdout, "\n-func f() { time.AfterFunc(1, f) }\n+func f() { timer.AfterFunc(1, f) }\n") {
		t.Errorf("the diff: exit code %d, %q, %q", code, stdout, stderr)
	}
	var report struct {
		Counts struct{ Sites, Rewritten, Lines int }
		Sites  []struct{ From, To, Use string }
	}
	stdout, _, code = clitest.Run("migrate", "-C", dir, "--json", "./...")
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != cli.ExitPending {
		t.Errorf("the JSON: exit code %d, %v", code, err)
	}
	if c := report.Counts; c.Sites != 1 || c.Rewritten != 1 || c.Lines != 2 || len(report.Sites) != 1 || report.Sites[0].Use != "each call" {
		t.Errorf("the JSON: %+v", report)
	}

	stdout, stderr, code = clitest.Run("migrate", "-C", dir, "--fix", "./...")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "Rewrote 1 file.\nNext, unless go.mod requires it: go get github.com/tickless/tickless\n") {
		t.Errorf("the fix: exit code %d, %q, %q", code, stdout, stderr)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "m.go")); err != nil || string(text) != after {
		t.Errorf("the file is %q, %v", text, err)
	}
}

func TestMigrate_NothingToDo(t *testing.T) {
	dir := module(t, "package m\n")
	stdout, stderr, code := clitest.Run("migrate", "-C", dir, "./...")
	if code != 0 || stderr != "" || stdout != "example.com/m starts no timers.\n" {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

func TestMigrate_Fails(t *testing.T) {
	dir := module(t, "package m\n\nimport \"time\"\n\nvar x int = time.Sleep\n")
	for args, want := range map[string]string{
		"./...":     "m.go:5:13: cannot use",
		"./missing": "missing",
		"m.go":      "belongs to no module: name packages of a module, such as ./...",
	} {
		stdout, stderr, code := clitest.Run("migrate", "-C", dir, args)
		if code != cli.ExitFailed || stdout != "" || !strings.HasPrefix(stderr, "tickless: ") || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// --fix refuses if git cannot undo it.
func TestMigrate_Dirty(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := module(t, before)
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, stderr, code := clitest.Run("migrate", "-C", dir, "--fix", "./...")
	if want := "git has not recorded all changes of the module (go.mod, m.go): commit them, or use --allow-dirty"; code != cli.ExitFailed || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, %q, want %q", code, stderr, want)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "m.go")); err != nil || string(text) != before {
		t.Errorf("the file is %q, %v", text, err)
	}
	stdout, stderr, code := clitest.Run("migrate", "-C", dir, "--fix", "--allow-dirty", "./...")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "Rewrote 1 file.") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

// Calls that are not worth it are rewritten with --all only.
func TestMigrate_NotWorthIt(t *testing.T) {
	dir := module(t, "package m\n\nimport \"time\"\n\nfunc init() { time.AfterFunc(1, nil) }\n")
	stdout, _, code := clitest.Run("migrate", "-C", dir, "--fix", "./...")
	if code != 0 || !strings.Contains(stdout, "m.go:5:15  time.AfterFunc -> timer.AfterFunc  once") || !strings.Contains(stdout, "0 of 1 call site can be rewritten, on 0 lines of 0 files; 1 not worth it; 0 left.") {
		t.Errorf("exit code %d, %q", code, stdout)
	}
	stdout, _, code = clitest.Run("migrate", "-C", dir, "--fix", "--all", "./...")
	if code != 0 || !strings.Contains(stdout, "Rewrote 1 file.") {
		t.Errorf("with --all: exit code %d, %q", code, stdout)
	}
}
