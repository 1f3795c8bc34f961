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
	"redis":                {},
	"stores":               {},
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

// TestLayout_InternalStaysInItsModule keeps modules from importing what is internal to
// another: they are released apart.
func TestLayout_InternalStaysInItsModule(t *testing.T) {
	var dirs []string
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod"} {
		modules, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range modules {
			dirs = append(dirs, strings.TrimPrefix(filepath.Dir(m), "../../"))
		}
	}
	if len(dirs) == 0 {
		t.Fatal("there are no modules")
	}
	for _, dir := range dirs {
		for _, p := range packages(t, dir, "-find", "-json=ImportPath,Dir,GoFiles") {
			for _, path := range p.imports(t) {
				ours := strings.HasPrefix(path, module+"/") && strings.Contains(path, "/internal/")
				if ours && !strings.HasPrefix(path, module+"/"+dir+"/") && p.ImportPath != module+"/durable/memstore" {
					t.Errorf("%s, of module %s, imports %s", p.ImportPath, dir, path)
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
