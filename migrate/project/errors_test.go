package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tickless/tickless/migrate"
	"github.com/tickless/tickless/migrate/project"
)

// loadError returns the error of Load. It fails the test if there is none.
func loadError(t *testing.T, dir string, patterns ...string) error {
	t.Helper()
	_, err := project.Load(t.Context(), project.Config{Dir: dir, Patterns: patterns, Env: env()})
	if err == nil {
		t.Fatalf("%q in %s: no error", patterns, dir)
	}
	return err
}

// Load reports each compile error once, though the compiler and the package's tests repeat
// it.
func TestProject_CompileErrors(t *testing.T) {
	const mod = "module example.com/m\n\ngo 1.25\n"
	const test = "package m\n\nimport \"testing\"\n\nfunc Test(t *testing.T) { f() }\n"
	for _, tt := range []struct{ name, src, want string }{
		{"types", "package m\n\nimport \"time\"\n\nvar x int = \"\"\n\nfunc f() { time.Sleep(g()) }\n", "m.go:5:13: cannot use \"\" (untyped string constant) as int value in variable declaration\nm.go:7:23: undefined: g"},
		{"syntax", "package m\n\nimport \"time\"\n\nvar sleep = time.Sleep\n\nfunc f( {\n", "m.go:7:9: expected ')', found '{'"},
		{"a package that is missing", "package m\n\nimport (\n\t\"none\"\n\t\"time\"\n)\n\nfunc f() { none.F(time.Sleep) }\n", "m.go:4:2: package none is not in std"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, map[string]string{"go.mod": mod, "m.go": tt.src, "m_test.go": test, "user/u.go": "package user\n\nimport _ \"example.com/m\"\n"})
			want := "the module does not compile:\n" + tt.want
			err := loadError(t, dir, "./...")
			if text, _, _ := strings.Cut(err.Error(), " (/"); text != want { // where package std is
				t.Errorf("%q\nwant %q", err, want)
			}
		})
	}
}

func TestProject_CalledWrongly(t *testing.T) {
	dir := write(t, map[string]string{
		"go.mod":       "module example.com/m\n\ngo 1.25\n",
		"m.go":         "package m\n",
		"other/go.mod": "module example.com/other\n\ngo 1.25\n",
	})
	for _, tt := range []struct{ dir, pattern, want string }{
		{dir, "m.go", "package command-line-arguments belongs to no module: name packages of a module, such as ./... of its folder"},
		{filepath.Join(dir, "none"), "./...", "no such file or directory"},
		{dir, "./none", "stat " + filepath.Join(dir, "none") + ": directory not found"},
		{dir, "fmt", "package fmt belongs to no module"},
		{filepath.Join(dir, "other"), "./...", "no packages match ./..."},
		{t.TempDir(), "./...", "directory prefix . does not contain main module"},
		{t.TempDir(), "", "go.mod file not found in current directory or any parent directory"},
	} {
		if err := loadError(t, tt.dir, tt.pattern); !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s in %s: %q, want %q", tt.pattern, tt.dir, err, tt.want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if err := loadError(t, dir, "./..."); !strings.Contains(err.Error(), `"go": executable file not found`) {
		t.Errorf("without the go command: %q", err)
	}
}

// A module that requires this library gets its Go version, as docs/migrating.md says.
func TestProject_GoVersionIsRaised(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the go command")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := "module example.com/m\n\ngo 1.20\n\nreplace github.com/tickless/tickless => " + root + "\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "off") // go.mod replaces the library
	goCommand(t, dir, "get", "github.com/tickless/tickless")
	got, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.Contains(string(got), "\ngo 1.25") {
		t.Errorf("go.mod is %s, %v", got, err)
	}
}

// Packages that start no timers, and those that no pattern matches, need not compile.
func TestProject_OthersThatDoNotCompile(t *testing.T) {
	dir := write(t, map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.25\n",
		"m.go":        "package m\n\nimport \"time\"\n\nfunc f() { time.AfterFunc(1, f) }\n",
		"broken/b.go": "package broken\n\nvar x int = \"\"\n",
		"timers/c.go": "package timers\n\nimport (\n\t\"time\"\n\n\t\"example.com/m/broken\"\n)\n\nfunc f() { time.AfterFunc(1, f); broken.X() }\n",
	})
	compare(t, load(t, dir, migrate.Options{}, ".", "./broken"), map[string]string{"m.go:5 time.AfterFunc": ""})
	if err := loadError(t, dir, "./timers"); !strings.Contains(err.Error(), "timers/c.go:9:41: undefined: broken.X") {
		t.Errorf("a package that does not compile: %v", err)
	}
}

func TestProject_CountedGoroutines(t *testing.T) {
	dir := write(t, map[string]string{
		"go.mod":    "module example.com/m\n\ngo 1.25\n",
		"m.go":      "package m\n\nimport \"time\"\n\nfunc f() { time.AfterFunc(1, f) }\n",
		"m_test.go": "package m\n\nimport (\n\t\"os\"\n\t\"runtime\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tm.Run()\n\tif runtime.NumGoroutine() != 1 {\n\t\tos.Exit(1)\n\t}\n}\n",
	})
	p := load(t, dir, migrate.Options{}, "./...")
	if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], "m_test.go:11:5: goroutines are counted here") {
		t.Errorf("the warnings are %q", p.Warnings)
	}
}
