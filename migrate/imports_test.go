package migrate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestEditImports(t *testing.T) {
	const timer = `"github.com/tickless/tickless/timer"`
	for _, tt := range []struct {
		name, src string
		removed   string
		want      string
	}{
		{"none", "package p\n\nvar x int\n", "", "package p\n\nimport TIMER\n\nvar x int\n"},
		{"replaced", "package p\n\nimport \"time\"\n\nvar x  int\n", "time", "package p\n\nimport TIMER\n\nvar x  int\n"},
		{"both gone", "package p\n\nimport (\n\t\"context\"\n\t\"time\"\n)\n", "context time", "package p\n\nimport TIMER\n"},
		{"one line", "package p; import \"fmt\"; import \"time\"; var x int\n", "time", "package p\n\nimport (\n\t\"fmt\"\n\n\tTIMER\n); var x int\n"},
		{"a heading stays", "package p\n\nimport (\n\t// standard\n\t\"context\"\n\t\"fmt\"\n)\n", "", "package p\n\nimport (\n\t// standard\n\t\"context\"\n\t\"fmt\"\n\n\tTIMER\n)\n"},
		{"wrapped", "package p\n\nimport f \"fmt\" // why\n", "", "package p\n\nimport (\n\tf \"fmt\" // why\n\n\tTIMER\n)\n"},
		{"sorted", "// Package p.\npackage p\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/a/b\"\n\t\"github.com/z/a\"\n\n\t\"own.org/c\"\n)\n", "", "// Package p.\npackage p\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/a/b\"\n\tTIMER\n\t\"github.com/z/a\"\n\n\t\"own.org/c\"\n)\n"},
		{"no end of line", "package p", "", "package p\n\nimport TIMER"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, nl := range []string{"\n", "\r\n"} {
				src, want := strings.ReplaceAll(tt.src, "\n", nl), strings.ReplaceAll(strings.ReplaceAll(tt.want, "TIMER", timer), "\n", nl)
				if !strings.Contains(src, "\n") {
					want = strings.ReplaceAll(want, "\r", "")
				}
				f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ImportsOnly)
				if err != nil {
					t.Fatal(err)
				}
				removed := slices.DeleteFunc(slices.Clone(f.Imports), func(s *ast.ImportSpec) bool {
					return !slices.Contains(strings.Fields(tt.removed), importPath(s))
				})
				e, err := editImports([]byte(src), removed, []addedImport{{TimerPath, "timer"}})
				if got := string(applyEdits([]byte(src), []Edit{e})); err != nil || got != want {
					t.Errorf("%q\nbecomes %q, %v\nwant    %q", src, got, err, want)
				}
			}
		})
	}
	if e, err := editImports([]byte("package p\n"), nil, []addedImport{{TimerPath, "tickless"}}); e.New != "package p\n\nimport tickless "+timer || err != nil {
		t.Errorf("the added import has a name: %+v, %v", e, err)
	}
}
