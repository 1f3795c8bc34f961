package layout

import (
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The modules beside the core have import lines of their own. Those of the core are
// in layout_test.go.

// commandShares lists what the parts of cmd/tickless have in common, and what each
// of these may import of the others. All other packages under its internal folder
// are demonstrations. They may import what is listed here, and nothing of one
// another.
var commandShares = map[string][]string{
	"child":   {"cli"},
	"cli":     {},
	"clitest": {"cli"},
	"measure": {},
	"stores":  {},
}

func TestLayout_CommandImportsRunOneWay(t *testing.T) {
	for name, imports := range importsWithin(t, "cmd/tickless") {
		part, below := strings.CutPrefix(name, "internal/")
		if !below {
			continue // the program itself, which may import all of them
		}
		allowed, shared := commandShares[part]
		if !shared {
			allowed = slices.Collect(maps.Keys(commandShares))
		}
		for _, imported := range imports {
			if !slices.Contains(allowed, strings.TrimPrefix(imported, "internal/")) {
				t.Errorf("cmd/tickless/%s imports %s, which does not stand below it", name, imported)
			}
		}
	}
}

// benchmarksMayImport says the same of the module of benchmarks; "." is its root.
var benchmarksMayImport = map[string][]string{
	"internal/hashedwheel": {},
	"internal/heaptimer":   {},
	"report":               {},
	"scaling":              {},
	"scaling/lines":        {},
	".":                    {"internal/hashedwheel", "internal/heaptimer"},
	"peers":                {"."},
}

func TestLayout_BenchmarksImportsRunOneWay(t *testing.T) {
	checkImports(t, "benchmarks", "benchmarksMayImport", benchmarksMayImport)
}

// durableMayImport says the same of the module of durable.
var durableMayImport = map[string][]string{
	".":                {"store"},
	"callback":         {"."},
	"store":            {},
	"store/storetest":  {"store"},
	"memstore":         {"store"},
	"metrics":          {"."},
	"internal/machine": {},
	"internal/faults":  {"internal/machine"},
}

func TestLayout_DurableImportsRunOneWay(t *testing.T) {
	checkImports(t, "durable", "durableMayImport", durableMayImport)
}

// migrateMayImport says the same of the module of migrate.
var migrateMayImport = map[string][]string{
	".":       {},
	"project": {"."},
	"vettool": {"."},
}

func TestLayout_MigrateImportsRunOneWay(t *testing.T) {
	checkImports(t, "migrate", "migrateMayImport", migrateMayImport)
}

// TestLayout_ClocksStandAlone keeps the clocks, each a module of one package, from
// needing one another.
func TestLayout_ClocksStandAlone(t *testing.T) {
	modules, err := filepath.Glob("../../clocks/*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) == 0 {
		t.Fatal("there are no clocks")
	}
	for _, mod := range modules {
		dir := "clocks/" + filepath.Base(filepath.Dir(mod))
		checkImports(t, dir, "this test", map[string][]string{".": {}})
		for _, p := range packages(t, dir, "-find", "-json=ImportPath,Dir,GoFiles") {
			for _, path := range p.imports(t) {
				if strings.HasPrefix(path, module+"/clocks/") {
					t.Errorf("%s imports %s", dir, path)
				}
			}
		}
	}
}

// TestLayout_ExportersStandAlone keeps the exporters from needing one another.
func TestLayout_ExportersStandAlone(t *testing.T) {
	for _, dir := range []string{"observe/otel", "observe/prom"} {
		checkImports(t, dir, "this test", map[string][]string{".": {}})
		for _, p := range packages(t, dir, "-find", "-json=ImportPath,Dir,GoFiles") {
			for _, path := range p.imports(t) {
				below, ours := strings.CutPrefix(path, module+"/")
				if ours && !slices.Contains([]string{"observe/metric", "observe", "timer"}, below) {
					t.Errorf("%s imports %s", dir, path)
				}
			}
		}
	}
}

// checkImports compares what the packages of a module import of it with what the list
// of that name allows.
func checkImports(t *testing.T, dir, list string, allowed map[string][]string) {
	t.Helper()
	for name, imports := range importsWithin(t, dir) {
		below, known := allowed[name]
		if !known {
			t.Errorf("%s/%s has no place in the import order: add it to %s", dir, name, list)
		}
		for _, imported := range imports {
			if !slices.Contains(below, imported) {
				t.Errorf("%s/%s imports %s, which does not stand below it", dir, name, imported)
			}
		}
	}
}

// importsWithin returns what each package of a module imports of that module,
// without tests. All names are folders of the module, "." its root.
func importsWithin(t *testing.T, dir string) map[string][]string {
	t.Helper()
	root := module + "/" + dir
	folder := func(path string) (name string, ours bool) {
		if path == root {
			return ".", true
		}
		return strings.CutPrefix(path, root+"/")
	}
	all := make(map[string][]string)
	for _, p := range packages(t, dir, "-find", "-json=ImportPath,Dir,GoFiles") {
		name, _ := folder(p.ImportPath)
		all[name] = nil
		for _, path := range p.imports(t) {
			if imported, ours := folder(path); ours {
				all[name] = append(all[name], imported)
			}
		}
	}
	return all
}

// imports returns what the package imports itself. It reads the source, so that
// nothing has to be downloaded that the core does not need.
func (p listed) imports(t *testing.T) (paths []string) {
	t.Helper()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
	}
	return paths
}
