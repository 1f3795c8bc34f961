package migrate

import (
	"strings"
	"testing"
)

func TestEditImports(t *testing.T) {
	const timer = `"github.com/tickless/tickless/timer"`
	for _, tt := range []struct {
		name, src string
		gone      []int
		want      string
	}{
		{"none", "package p\n\nvar x int\n", nil, "package p\n\nimport TIMER\n\nvar x int\n"},
		{"replaced", "package p\n\nimport \"time\" // why\n\nvar x int\n", []int{0}, "package p\n\nimport TIMER // why\n\nvar x int\n"},
		{"replaced in a block", "package p\n\nimport ( // open\n\t// only this\n\t\"time\"\n) // close\n", []int{0}, "package p\n\nimport ( // open\n\t// only this\n\tTIMER\n) // close\n"},
		{"both gone", "package p\n\nimport (\n\t\"context\"\n\t\"time\"\n)\n", []int{0, 1}, "package p\n\nimport (\n\tTIMER\n)\n"},
		{"one line", "package p; import \"fmt\"; import \"time\"; var x int\n", []int{1}, "package p; import \"fmt\"; import TIMER; var x int\n"},
		{"semicolons", "package p\n\nimport (\"fmt\"; \"time\")\n", []int{1}, "package p\n\nimport (\"fmt\"; TIMER)\n"},
		{"semicolon after it", "package p\n\nimport (\"context\"; \"fmt\")\n", []int{0}, "package p\n\nimport (\"fmt\"; TIMER)\n"},
		{"a heading stays", "package p\n\nimport (\n\t// standard\n\t\"context\"\n\t\"fmt\"\n)\n", []int{0}, "package p\n\nimport (\n\t// standard\n\t\"fmt\"\n\n\tTIMER\n)\n"},
		{"a block goes with its heading", "package p\n\nimport (\n\t\"fmt\"\n\n\t// for timers\n\t\"time\" // too\n\n\t\"x.y/z\"\n)\n", []int{1}, "package p\n\nimport (\n\t\"fmt\"\n\n\tTIMER\n\t\"x.y/z\"\n)\n"},
		{"in front of it", "package p\n\nimport (\n\t\"fmt\"\n\n\t/* for timers */ \"time\"\n)\n", []int{1}, "package p\n\nimport (\n\t\"fmt\"\n\n\tTIMER\n)\n"},
		{"a comment at the end", "package p\n\nimport (\n\t\"fmt\"\n\t\"time\"\n\t// end\n)\n", []int{1}, "package p\n\nimport (\n\t\"fmt\"\n\t// end\n\n\tTIMER\n)\n"},
		{"declarations", "package p\n\n// prints\nimport \"fmt\"\n\n// times\nimport \"time\"\nimport \"x.y/z\"\n", []int{1}, "package p\n\n// prints\nimport \"fmt\"\n\n// times\nimport \"x.y/z\"\nimport TIMER\n"},
		{"a declaration with its comment", "package p\n\nimport \"x.y/z\"\n\n// times\nimport \"time\"\n\nvar x int\n", []int{1}, "package p\n\nimport (\n\t\"x.y/z\"\n\tTIMER\n)\n\nvar x int\n"},
		{"wrapped", "package p\n\nimport f \"fmt\" // why\n", nil, "package p\n\nimport (\n\tf \"fmt\" // why\n\n\tTIMER\n)\n"},
		{"sorted", "package p\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/a/b\"\n\t\"github.com/z/a\"\n\n\t\"own.org/c\"\n)\n", nil, "package p\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/a/b\"\n\tTIMER\n\t\"github.com/z/a\"\n\n\t\"own.org/c\"\n)\n"},
		{"below a heading", "package p\n\nimport (\n\t// others\n\t\"github.com/z/a\"\n)\n", nil, "package p\n\nimport (\n\t// others\n\tTIMER\n\t\"github.com/z/a\"\n)\n"},
		{"on the line of the parenthesis", "package p\n\nimport (\"golang.org/x/net/html\"\n\t\"time\"\n)\n", nil, "package p\n\nimport (TIMER; \"golang.org/x/net/html\"\n\t\"time\"\n)\n"},
		{"no end of line", "package p", nil, "package p\nimport TIMER\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, nl := range []string{"\n", "\r\n"} {
				src, want := strings.ReplaceAll(tt.src, "\n", nl), strings.ReplaceAll(strings.ReplaceAll(tt.want, "TIMER", timer), "\n", nl)
				if !strings.Contains(src, "\n") {
					want = strings.ReplaceAll(want, "\r", "")
				}
				e, err := editImports([]byte(src), tt.gone, []addedImport{{TimerPath, "timer"}})
				if got := string(applyEdits([]byte(src), []Edit{e})); err != nil || got != want {
					t.Errorf("%q\nbecomes %q, %v\nwant    %q", src, got, err, want)
				}
			}
		})
	}
	src := "package p\n\nimport (\n\t\"fmt\"\n\t\"time\"\n)\n"
	e, err := editImports([]byte(src), []int{1}, nil)
	if got := string(applyEdits([]byte(src), []Edit{e})); got != "package p\n\nimport (\n\t\"fmt\"\n)\n" || err != nil {
		t.Errorf("an import is removed, none added: %q, %v", got, err)
	}
	if e, err := editImports([]byte("package p\n"), nil, []addedImport{{TimerPath, "tickless"}}); e.New != "\nimport tickless "+timer+"\n" || err != nil {
		t.Errorf("the added import has a name: %+v, %v", e, err)
	}
	src = "package p\n\nimport (\n\t\"context\"\n\t\"fmt\"\n)\n"
	e, err = editImports([]byte(src), []int{0}, []addedImport{{DeadlinePath, "deadline"}, {TimerPath, "timer"}})
	if got := string(applyEdits([]byte(src), []Edit{e})); got != "package p\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/tickless/tickless/deadline\"\n\t"+timer+"\n)\n" || err != nil {
		t.Errorf("two imports are added: %q, %v", got, err)
	}
}
