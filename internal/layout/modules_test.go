package layout

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mayShare lists the internal packages that a module may import from another, and why.
var mayShare = map[[2]string]string{
	{"cmd/tickless", module + "/cmd/internal/figures"}:               "a program: nobody imports it, so its modules always have the versions of its go.mod",
	{"durable/sqlitestore", module + "/durable/internal/simulation"}: "only its tests do",
	{"observe/otel", module + "/internal/observetest"}:               "only its tests do",
	{"observe/prom", module + "/internal/observetest"}:               "only its tests do",
}

// TestLayout_InternalStaysInItsModule requires that no module, tests included, imports an
// internal package of another: modules are released separately.
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
		for _, p := range packages(t, dir, "-e", "-json=ImportPath,Imports,TestImports,XTestImports") {
			for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
				ours := strings.HasPrefix(path, module+"/") && strings.Contains(path, "/internal/")
				if ours && !strings.HasPrefix(path, module+"/"+dir+"/") && mayShare[[2]string{dir, path}] == "" {
					t.Errorf("%s, of module %s, imports %s", p.ImportPath, dir, path)
				}
			}
		}
	}
}
