package layout

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tickless/tickless"

// mayImport lists the packages that each package of the module may import, directly or
// through others. The test fails for a package without an entry.
var mayImport = map[string][]string{
	// The leaves.
	"bucket":           {},
	"clock":            {},
	"delayqueue":       {"clock", "internal/bubble"},
	"executor":         {"internal/closed", "internal/latch", "internal/share"},
	"internal/alarm":   {"clock", "internal/bubble"},
	"internal/bubble":  {},
	"internal/share":   {},
	"internal/closed":  {},
	"internal/latch":   {},
	"internal/layout":  {},
	"internal/mutants": {},
	"timertest":        {"clock"},

	"timingwheel": {"bucket"},
	"timer":       belowTimer,

	// Packages built on timer.
	"deadline":                      onTimer,
	"httptimeout":                   append(onTimer[:len(onTimer):len(onTimer)], "deadline"),
	"idle":                          onTimer,
	"jobs":                          onTimer,
	"keyed":                         onTimer,
	"internal/conformance":          append(onTimer[:len(onTimer):len(onTimer)], "deadline", "internal/conformance/contexts"),
	"internal/conformance/contexts": append(onTimer[:len(onTimer):len(onTimer)], "deadline"),
	"internal/soak":                 append(onTimer[:len(onTimer):len(onTimer)], "deadline", "httptimeout", "idle", "jobs", "keyed", "purgatory"),
	"purgatory":                     onTimer,

	"cmd/internal/figures": {},
	"cmd/demo":             append(onTimer[:len(onTimer):len(onTimer)], "cmd/internal/figures"),

	// Packages that observe the packages above.
	"observe/metric":       onTimer,
	"observe":              belowObserve,
	"observe/debugpage":    onObserve,
	"observe/vars":         onObserve,
	"internal/observetest": append(onObserve[:len(onObserve):len(onObserve)], "timertest"),
}

var (
	belowTimer = []string{"bucket", "clock", "delayqueue", "executor", "internal/alarm", "internal/bubble", "internal/closed", "internal/latch", "internal/share", "timingwheel"}
	onTimer    = append(belowTimer[:len(belowTimer):len(belowTimer)], "timer")

	belowObserve = append(onTimer[:len(onTimer):len(onTimer)], "idle", "keyed", "observe/metric", "purgatory")
	onObserve    = append(belowObserve[:len(belowObserve):len(belowObserve)], "observe")
)

// mayRequire lists the modules that the core may require, tests included.
var mayRequire = map[string]bool{
	"github.com/emirpasic/gods":    true,
	"github.com/emirpasic/gods/v2": true,
	"github.com/stretchr/testify":  true, // in tests
	"go.uber.org/atomic":           true,
	"go.uber.org/goleak":           true, // in tests
	"golang.org/x/sync":            true,
	"golang.org/x/sys":             true, // the alarm on Linux
}

// onlyInTests lists the modules of mayRequire that no package may import
// outside its tests.
var onlyInTests = []string{"github.com/stretchr/testify", "go.uber.org/goleak"}

// listed has the fields of `go list -json` that this test reads.
type listed struct {
	ImportPath string
	Imports    []string // imports of the package itself
	Deps       []string

	TestImports, XTestImports []string // imports of its tests
}

func TestLayout_ImportsRunOneWay(t *testing.T) {
	for _, p := range corePackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("%s has no place in the import order: add it to mayImport", name)
			continue
		}
		for _, dep := range p.Deps {
			below, ours := strings.CutPrefix(dep, module+"/")
			if ours && !slices.Contains(allowed, below) {
				t.Errorf("%s imports %s, which mayImport does not list for it", name, below)
			}
		}
	}
}

// mayDial lists the packages that may import net: idle closes connections.
var mayDial = map[string]bool{"idle": true, "observe": true, "internal/observetest": true}

// mayServe lists the packages that may import net/http.
var mayServe = map[string]bool{
	"httptimeout":       true,
	"observe/debugpage": true,
	"observe/vars":      true, // the standard library's expvar serves
}

// TestLayout_CoreStaysLight keeps packages that timers do not need out of users'
// programs.
func TestLayout_CoreStaysLight(t *testing.T) {
	for _, p := range corePackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, dep := range p.Deps {
			heavy := dep == "net/http" || strings.Contains(dep, "redis") || dep == "net" && !mayDial[name]
			if heavy && !mayServe[name] {
				t.Errorf("%s imports %s", name, dep)
			}
			for _, m := range onlyInTests {
				if dep == m || strings.HasPrefix(dep, m+"/") {
					t.Errorf("%s imports %s outside its tests", name, dep)
				}
			}
		}
	}
}

func TestLayout_CoreRequiresOnlyAllowedModules(t *testing.T) {
	var mod struct {
		Go      string
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(run(t, ".", "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	if mod.Go != "1.25" && !strings.HasPrefix(mod.Go, "1.25.") {
		t.Errorf("go.mod says go %s, want 1.25", mod.Go)
	}
	for _, r := range mod.Require {
		if !r.Indirect && !mayRequire[r.Path] {
			t.Errorf("go.mod requires %s; allowed are %v", r.Path, slices.Sorted(maps.Keys(mayRequire)))
		}
	}
}

// corePackages lists the packages of the core module, without their tests.
func corePackages(t *testing.T) []listed {
	t.Helper()
	return packages(t, ".", "-json=ImportPath,Deps")
}

// packages lists the packages of the module in a directory of the repository. flags are
// passed to go list.
func packages(t *testing.T, dir string, flags ...string) []listed {
	t.Helper()
	args := append(append([]string{"list"}, flags...), "./...")
	dec := json.NewDecoder(bytes.NewReader(run(t, dir, args...)))
	var packages []listed
	for {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatal("go list found no package")
	}
	return packages
}

// run runs the go command in a directory of the repository, outside the workspace, and
// returns its output.
func run(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join("../..", dir))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = abs
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}
