package project_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tickless/tickless/migrate"
	"github.com/tickless/tickless/migrate/project"
)

// write creates a module with the given files and returns its folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, src := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reasons maps the position of each call to the reason why it is not rewritten. The reason
// is empty for a rewritten call.
func reasons(p *project.Project) map[string]string {
	got := make(map[string]string)
	for _, s := range p.Report.Sites {
		text := ""
		for _, r := range s.Left {
			text += fmt.Sprintf("%s (%s:%d)", r.Text, filepath.Base(r.Pos.Filename), r.Pos.Line)
		}
		rel, err := filepath.Rel(p.Dir, s.Pos.Filename)
		if err != nil {
			rel = s.Pos.Filename
		}
		got[fmt.Sprintf("%s:%d %s", filepath.ToSlash(rel), s.Pos.Line, s.From)] = text
	}
	return got
}

func compare(t *testing.T, p *project.Project, want map[string]string) {
	t.Helper()
	got := reasons(p)
	for site, reason := range want {
		if r, ok := got[site]; !ok || r != reason {
			t.Errorf("%s: the reason is %q, want %q", site, r, reason)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d call sites, want %d: %q", len(got), len(want), got)
	}
}

// The rewrite keeps CR LF line endings, and files with them stay formatted with gofmt.
func TestProject_LineEndings(t *testing.T) {
	const before = `package m

import (
	"fmt"
	"time" // for timers
)

type s struct {
	timer *time.Timer // aligned
	n     int
}

func f() { fmt.Println(s{timer: time.AfterFunc(1, nil)}) }
`
	const after = `package m

import (
	"fmt"

	tickless "github.com/tickless/tickless/timer"
)

type s struct {
	timer *tickless.Timer // aligned
	n     int
}

func f() { fmt.Println(s{timer: tickless.AfterFunc(1, nil)}) }
`
	const names = "package m\n\nvar timer int\n"
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	mixed := strings.Replace(before, "\n", "\r\n", 1)
	dir := write(t, map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.25\n",
		"unix/a.go":   before,
		"unix/n.go":   names,
		"dos/a.go":    crlf(before),
		"dos/n.go":    names,
		"single/a.go": crlf("package m\n\nimport \"time\"\n\nfunc f() { time.AfterFunc(1, nil) }\n"),
		"mixed/a.go":  mixed,
		"mixed/n.go":  names,
	})
	if err := load(t, dir, migrate.Options{}, "./...").Fix(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"unix/a.go":   after,
		"dos/a.go":    crlf(after),
		"single/a.go": crlf("package m\n\nimport \"github.com/tickless/tickless/timer\"\n\nfunc f() { timer.AfterFunc(1, nil) }\n"),
		"mixed/a.go":  after,
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if name == "mixed/a.go" { // whose endings say nothing
			got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))
		}
		if err != nil || string(got) != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
}

// The line numbers in a diff's hunk headers are correct.
func TestProject_DiffLineNumbers(t *testing.T) {
	var src strings.Builder
	src.WriteString("package m\n\nimport (\n\t\"fmt\"\n\t\"time\"\n)\n\nvar _ = fmt.Sprint\n\n")
	for i := range 12 {
		fmt.Fprintf(&src, "func f%d() { time.AfterFunc(1, nil) }\n\n", i)
		for j := range i {
			fmt.Fprintf(&src, "var v%d_%d = `\n-- a line\n++ another\n`\n\n", i, j)
		}
	}
	dir := write(t, map[string]string{"go.mod": "module example.com/m\n\ngo 1.25\n", "a.go": strings.TrimRight(src.String(), "\n") + "\n"})
	p := load(t, dir, migrate.Options{}, "./...")
	var diff bytes.Buffer
	if err := p.WriteDiff(&diff); err != nil {
		t.Fatal(err)
	}
	c := p.Changes()[0]
	before, after := strings.SplitAfter(string(c.Old), "\n"), strings.SplitAfter(string(c.New), "\n")
	hunks, at, to := 0, 0, 0
	for line := range strings.Lines(strings.SplitAfterN(diff.String(), "\n", 3)[2]) {
		if strings.HasPrefix(line, "@@") {
			var n, m int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &at, &n, &to, &m); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			hunks++
			continue
		}
		if line[0] != '+' {
			if before[at-1] != line[1:] {
				t.Fatalf("line %d was %q, not %q", at, before[at-1], line[1:])
			}
			at++
		}
		if line[0] != '-' {
			if after[to-1] != line[1:] {
				t.Fatalf("line %d is %q, not %q", to, after[to-1], line[1:])
			}
			to++
		}
	}
	if hunks < 3 || c.Lines != 14 {
		t.Errorf("the diff has %d hunks and adds %d lines", hunks, c.Lines)
	}
}

// A call in a file that uses cgo is reported with its position in the original file.
func TestProject_Cgo(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles C")
	}
	dir := write(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.25\n",
		"c.go": `package m

// int one(void) { return 1; }
import "C"

import "time"

type conn struct{ t *time.Timer }

func (c *conn) start() { c.t = time.AfterFunc(1, func() { C.one() }) }
`,
		"d.go": "package m\n\nimport \"time\"\n\nfunc (c *conn) again() { c.t = time.AfterFunc(1, nil) }\n",
	})
	p, err := project.Load(t.Context(), project.Config{Dir: dir, Patterns: []string{"./..."}, Env: append(env(), "CGO_ENABLED=1")})
	if err != nil {
		t.Skipf("there is no C compiler: %v", err)
	}
	compare(t, p, map[string]string{
		"c.go:10 time.AfterFunc": "the file uses cgo (c.go:10)",
		"d.go:5 time.AfterFunc":  "the file uses cgo (c.go:8)",
	})
}

// Fix writes no file if one of them has changed since Load.
func TestProject_FixAllOrNothing(t *testing.T) {
	const src = "package m\n\nimport \"time\"\n\nfunc %s() { time.AfterFunc(1, nil) }\n"
	dir := write(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.25\n",
		"a.go":   fmt.Sprintf(src, "a"),
		"b.go":   fmt.Sprintf(src, "b"),
	})
	p := load(t, dir, migrate.Options{}, "./...")
	changed := filepath.Join(dir, "b.go")
	if err := os.WriteFile(changed, []byte("package m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.Fix(); err == nil || err.Error() != changed+" has changed since it was loaded" {
		t.Errorf("Fix after a file was changed: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a.go")); err != nil || string(text) != fmt.Sprintf(src, "a") {
		t.Errorf("the other file is %q, %v", text, err)
	}
}

// If a file cannot be replaced, Fix restores the others and leaves no temporary files.
func TestProject_FixPutsBack(t *testing.T) {
	const src = "package m\n\nimport \"time\"\n\nfunc %s() { time.AfterFunc(1, nil) }\n"
	files := map[string]string{"go.mod": "module example.com/m\n\ngo 1.25\n"}
	for _, name := range []string{"a", "b", "c"} {
		files[name+".go"] = fmt.Sprintf(src, name)
	}
	dir := write(t, files)
	p := load(t, dir, migrate.Options{}, "./...")
	refused := errors.New("refused")
	project.FailRename(t, filepath.Join(dir, "c.go"), refused)
	if err := p.Fix(); !errors.Is(err, refused) {
		t.Errorf("Fix returned %v, want the error of rename", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(files) {
		t.Errorf("the folder has %v, want only the original files; %v", entries, err)
	}
	for name, want := range files {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s is %q after a failed Fix; %v", name, text, err)
		}
	}
}

// Fix keeps file modes.
func TestProject_FixModes(t *testing.T) {
	const src = "package m\n\nimport \"time\"\n\nfunc f() { time.AfterFunc(1, nil) }\n"
	dir := write(t, map[string]string{"go.mod": "module example.com/m\n\ngo 1.25\n", "a.go": src})
	file := filepath.Join(dir, "a.go")
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := load(t, dir, migrate.Options{}, "./...").Fix(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("the mode of the file is %v, want 0640; %v", info, err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "timer.AfterFunc") {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// If a file changes while Load runs, Fix does not write it.
func TestProject_SavedMeanwhile(t *testing.T) {
	const src = "package m\n\nimport \"time\"\n\nfunc f() { time.AfterFunc(1, nil) }\n"
	dir := write(t, map[string]string{"go.mod": "module example.com/m\n\ngo 1.25\n", "a.go": src})
	file := filepath.Join(dir, "a.go")
	p := load(t, dir, migrate.Options{ReadFile: func(name string) ([]byte, error) {
		text, err := os.ReadFile(name)
		return text, errors.Join(err, os.WriteFile(file, []byte("// Comment.\n"+src), 0o644))
	}}, "./...")
	if c := p.Changes(); len(c) != 1 || string(c[0].Old) != src {
		t.Errorf("the changes are %q", c)
	}
	if err := p.Fix(); err == nil || err.Error() != file+" has changed since it was loaded" {
		t.Errorf("Fix after a file was saved: %v", err)
	}
}

// A file that is a link is not rewritten, even if it becomes one after Load.
func TestProject_Links(t *testing.T) {
	const src = "package %s\n\nimport \"time\"\n\nfunc f() { time.AfterFunc(1, nil) }\n"
	const mod = "module example.com/%s\n\ngo 1.25\n"
	outside := write(t, map[string]string{"go.mod": fmt.Sprintf(mod, "o"), "o.go": fmt.Sprintf(src, "m")})
	dir := write(t, map[string]string{
		"go.mod":           fmt.Sprintf(mod, "m"),
		"later.go":         fmt.Sprintf(src, "m"),
		"nested/go.mod":    fmt.Sprintf(mod, "n"),
		"nested/n.go":      fmt.Sprintf(src, "n"),
		"inside/real":      fmt.Sprintf(src, "inside"),
		"tonested/keep.go": "package n\n",
		"far/keep.go":      "package m\n",
	})
	for link, to := range map[string]string{
		"far/o.go":      filepath.Join(outside, "o.go"),
		"tonested/n.go": "../nested/n.go",
		"inside/a.go":   "real",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	p := load(t, dir, migrate.Options{}, "./...")
	compare(t, p, map[string]string{
		"later.go:5 time.AfterFunc":      "",
		"inside/a.go:5 time.AfterFunc":   "the file is a link (a.go:5)",
		"far/o.go:5 time.AfterFunc":      "the file is a link (o.go:5)",
		"tonested/n.go:5 time.AfterFunc": "the file is a link (n.go:5)",
	})
	later := filepath.Join(dir, "later.go")
	if err := errors.Join(os.Remove(later), os.Symlink(filepath.Join(outside, "o.go"), later)); err != nil {
		t.Fatal(err)
	}
	if err := p.Fix(); err == nil || !strings.Contains(err.Error(), "has become a link") {
		t.Errorf("Fix of a file that became a link: %v", err)
	}
	for _, file := range []string{filepath.Join(outside, "o.go"), filepath.Join(dir, "nested/n.go"), filepath.Join(dir, "inside/real")} {
		if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "timer.") {
			t.Errorf("%s is %q, %v", file, text, err)
		}
	}
}

// Uncommitted lists what git has not recorded.
func TestProject_Uncommitted(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	const src = "package m\n\nimport \"time\"\n\nfunc f() { time.AfterFunc(1, nil) }\n"
	root := write(t, map[string]string{
		".gitignore":    "ignored\n",
		"elsewhere":     "",
		"m/go.mod":      "module example.com/m\n\ngo 1.25\n",
		"m/a.go":        src,
		"m/ignored":     "",
		"m/sub dir/x.y": "",
	})
	dir := filepath.Join(root, "m")
	check := func(what string, want ...string) {
		t.Helper()
		if got, err := load(t, dir, migrate.Options{}, "./...").Uncommitted(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", what, got, err, want)
		}
	}
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	check("no repository")
	git("init", "-q")
	git("add", "m")
	check("a file was added", "m/a.go", "m/go.mod", `"m/sub dir/x.y"`)
	git("commit", "-q", "-m", "first")
	check("everything in the module is committed")
	if err := os.WriteFile(filepath.Join(dir, "sub dir/x.y"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("mv", "m/a.go", "m/c.go")
	check("a changed file and a renamed one", "m/a.go -> m/c.go", `"m/sub dir/x.y"`)
}
