package migrate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Package is a type-checked package to analyze, with its tests of the same package.
type Package struct {
	Path  string
	Files []*ast.File
	Types *types.Package
	Info  *types.Info

	// Importer returns the packages that Files import, and those that these import. Analyze
	// type-checks the rewritten package with it.
	Importer types.Importer
	Sizes    types.Sizes // nil means those of the gc compiler on amd64

	// Unseen are the names of the folder's Go files that are not in Files, such as files
	// for other systems. Analyze does not change types that they may use.
	Unseen []string
	// Fixed maps names of files that must not change to the reason.
	Fixed map[string]string
}

// Options choose what Analyze rewrites.
type Options struct {
	// Tests says to rewrite calls in tests too. Without it, tests change only where they
	// share a type with the code under test.
	Tests bool
	// All says to rewrite calls too that are not worth it. Without it, these change only
	// where they share a type with calls that may be.
	All bool
	// ReadFile reads a file by its name. Nil means os.ReadFile.
	ReadFile func(name string) ([]byte, error)
}

// program holds the state of the analysis of a package.
type program struct {
	fset *token.FileSet
	opts Options
	pkg  *Package

	files    []*file // in the order of pkg.Files
	unseen   []*ast.File
	classes  []*class
	sites    []*site
	newCalls []*site // calls of NewTimer and NewTicker
	stubs    map[string]*types.Package

	file *file // that is being visited
}

// file is a source file and what the analysis knows about it.
type file struct {
	name         string
	ast          *ast.File
	isTest       bool
	refusal      string              // why the file must not change, or empty
	leakCheckPos token.Pos           // where a test counts goroutines, or NoPos
	replacements map[int]replacement // by offset
}

// replacement replaces the package name in a qualified identifier, such as time in
// time.Timer.
type replacement struct {
	newPath string // import path of the new package
	oldLen  int    // length of the old name
}

// Analyze decides which timers of a package can be rewritten, from this package alone.
func Analyze(fset *token.FileSet, pkg *Package, opts Options) *Report {
	p := &program{fset: fset, opts: opts, pkg: pkg, stubs: make(map[string]*types.Package)}
	p.parseUnseenFiles()
	for _, f := range pkg.Files {
		p.addFile(f)
	}
	for _, f := range p.files {
		p.file = f
		ast.PreorderStack(f.ast, nil, func(n ast.Node, stack []ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				p.visitSelector(sel, stack)
			}
			return true
		})
	}
	p.findClasses().blockOtherBehavior()
	return p.buildReport()
}

func (p *program) addFile(f *ast.File) {
	name := p.positionOf(f.FileStart).Filename
	newFile := &file{name: name, ast: f, isTest: strings.HasSuffix(name, "_test.go"), replacements: make(map[int]replacement)}
	switch {
	case importsPath(f, "C") || p.fset.Position(f.Name.Pos()).Filename != name: // cgo sets line directives
		newFile.refusal = "the file uses cgo"
	case ast.IsGenerated(f):
		newFile.refusal = "the file is generated"
	default:
		newFile.refusal = p.pkg.Fixed[name]
	}
	if newFile.isTest {
		_, newFile.leakCheckPos = Scan(f)
	}
	p.files = append(p.files, newFile)
}

// parseUnseenFiles parses the folder's other files, except those with a syntax error.
func (p *program) parseUnseenFiles() {
	for _, name := range p.pkg.Unseen {
		src, err := p.readFile(name)
		if err != nil {
			continue
		}
		if f, err := parser.ParseFile(p.fset, name, src, parser.SkipObjectResolution); err == nil {
			p.unseen = append(p.unseen, f)
		}
	}
}

// positionOf returns the file and offset of pos. It ignores line directives.
func (p *program) positionOf(pos token.Pos) token.Position { return p.fset.PositionFor(pos, false) }

func (p *program) readFile(name string) ([]byte, error) {
	if p.opts.ReadFile != nil {
		// opts.ReadFile may refuse some files: an analysis.Pass does not read tests that
		// it did not load.
		if src, err := p.opts.ReadFile(name); err == nil {
			return src, nil
		}
	}
	return os.ReadFile(name)
}

// importsPath reports whether the file imports the package with the given path.
func importsPath(f *ast.File, path string) bool {
	return slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return importPath(s) == path })
}

// countsGoroutines are the functions that a test calls to look for leaked goroutines. Package
// goleak is none of them: it waits for goroutines that end by themselves.
var countsGoroutines = map[string]bool{"runtime.NumGoroutine": true, "runtime.Stack": true, "runtime/pprof.Lookup": true}

// Scan looks at a file without type information. It returns the number of its call sites, and
// where it counts or lists goroutines.
func Scan(f *ast.File) (sites int, leakCheckPos token.Pos) {
	paths := make(map[string]string) // of imported packages, by the name in this file
	for _, s := range f.Imports {
		name := filepath.Base(importPath(s))
		if s.Name != nil {
			name = s.Name.Name
		}
		paths[name] = importPath(s)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok {
			if _, ok := constructors[paths[x.Name]][sel.Sel.Name]; ok {
				sites++
			}
			if countsGoroutines[paths[x.Name]+"."+sel.Sel.Name] && !leakCheckPos.IsValid() {
				leakCheckPos = sel.Pos()
			}
		}
		return true
	})
	return sites, leakCheckPos
}
