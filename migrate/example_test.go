package migrate_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"

	"github.com/tickless/tickless/migrate"
)

func Example() {
	const src = `package p

import "time"

type lease struct{ timeout *time.Timer }

func (l *lease) start(d time.Duration, f func()) {
	l.timeout = time.AfterFunc(d, f)
}

func (l *lease) wait(d time.Duration) { <-time.After(d) }
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", src, parser.ParseComments)
	if err != nil {
		panic(err)
	}
	info := &types.Info{
		Types:      make(map[ast.Expr]types.TypeAndValue),
		Defs:       make(map[*ast.Ident]types.Object),
		Uses:       make(map[*ast.Ident]types.Object),
		Implicits:  make(map[ast.Node]types.Object),
		Instances:  make(map[*ast.Ident]types.Instance),
		Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}
	imports := importer.ForCompiler(fset, "source", nil)
	config := types.Config{Importer: imports}
	pkg, err := config.Check("p", fset, []*ast.File{file}, info)
	if err != nil {
		panic(err)
	}

	report := migrate.Analyze(fset, &migrate.Package{Path: "p", Files: []*ast.File{file}, Types: pkg, Info: info, Importer: imports}, migrate.Options{
		ReadFile: func(string) ([]byte, error) { return []byte(src), nil },
	})
	for _, s := range report.Sites {
		if s.Rewritten() {
			fmt.Printf("%v: %s becomes %s: %v\n", s.Pos, s.From, s.To, s.Use)
		} else {
			fmt.Printf("%v: %s stays: %s\n", s.Pos, s.From, s.Left[0].Text)
		}
	}
	// Output:
	// p.go:8:14: time.AfterFunc becomes timer.AfterFunc: each object
	// p.go:11:43: time.After stays: timer.After is time.After, which cannot be stopped
}
