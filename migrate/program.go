package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A Package is a type-checked package to analyze.
type Package struct {
	Path  string
	Files []*ast.File
	Types *types.Package
	Info  *types.Info

	// Unseen are the names of the folder's Go files that are not in Files, such as files
	// for other systems. Analyze does not change types that they may use.
	Unseen []string
	// Untouched says that the package must not be changed.
	Untouched bool
}

// Options choose what Analyze rewrites.
type Options struct {
	// Tests says to rewrite calls in tests too. Without it, tests change only where they
	// share a type with the code under test.
	Tests bool
	// Exported says to rewrite types of a package's API too. Internal packages and
	// programs have no API.
	Exported bool
	// Worth says to rewrite only calls for which Use.Worth is true, and calls that share a
	// type with them.
	Worth bool
	// ReadFile reads a file by its name. Nil means os.ReadFile.
	ReadFile func(name string) ([]byte, error)

	// Unseen are the names of the module's Go files that belong to no analyzed package.
	// Analyze does not change types that they may use.
	Unseen []string

	// Bubbles has the paths of packages of other modules that import testing/synctest,
	// directly or through others. They may run callbacks in a synctest bubble.
	Bubbles map[string]bool

	// unseenImporters says that packages that are not analyzed may import the analyzed ones.
	unseenImporters bool
}

// key is a source position. If a file is type-checked twice, with and without tests, a
// declaration has two types.Objects but one key.
type key struct {
	file      string
	line, col int
	kind      byte // 'o' for an object, 'e' for an expression
}

// program holds the state of one analysis of several packages.
type program struct {
	fset  *token.FileSet
	opts  Options
	paths map[string]bool // paths of the analyzed packages
	pkgs  []*Package

	nodes    map[key]*node
	sites    map[key]*site
	files    map[string]*file
	claimed  map[key]bool                // written timer types that belong to a node: see claim
	elided   map[*ast.CompositeLit]*node // literals without a type, such as {} in []T{{}}
	typeUses map[key]*typeUse
	unseen   map[string]*ast.File // files that were not type-checked, by name
	methods  map[string][]*node   // methods whose types contain a timer, by name

	api      map[types.Type]bool // types that other modules can reach
	apiNames map[key]bool        // declarations of the types in api

	// boxed are the timers that become interface values. unboxed are the type assertions
	// that return timers.
	boxed, unboxed []boxing
	typeArgs       []*node // type arguments that contain timers
	// generic is true if generic code converts its values to interface values or back.
	generic bool

	lenCalls       []token.Pos // calls of len or cap on a channel that may be a timer's
	storedChannels []*node     // timers whose channel is stored or passed on

	globals []global // see blockGlobals

	// The fields below describe the code that is being visited.

	pkg         *Package
	file        *file
	visitingPos token.Pos
}

// file is a source file and what the analysis knows about it.
type file struct {
	name         string
	ast          *ast.File
	packages     []*Package // the packages that contain it
	isTest       bool
	refusal      string              // why the file must not change, or empty
	leakCheck    token.Pos           // where it looks for leaked goroutines, or NoPos
	replacements map[int]replacement // by offset
}

// replacement replaces the package name in a qualified identifier, such as time in
// time.Timer.
type replacement struct {
	path   string // import path of the new package
	oldLen int    // length of the old name
}

// Analyze decides which timers of the packages can be rewritten. The packages must be
// type-checked together, with the file set fset.
func Analyze(fset *token.FileSet, pkgs []*Package, opts Options) *Report {
	p := &program{
		fset:     fset,
		opts:     opts,
		paths:    make(map[string]bool),
		pkgs:     pkgs,
		nodes:    make(map[key]*node),
		sites:    make(map[key]*site),
		files:    make(map[string]*file),
		claimed:  make(map[key]bool),
		elided:   make(map[*ast.CompositeLit]*node),
		typeUses: make(map[key]*typeUse),
		unseen:   make(map[string]*ast.File),
		methods:  make(map[string][]*node),

		api:      make(map[types.Type]bool),
		apiNames: make(map[key]bool),
	}
	for _, pkg := range pkgs {
		p.paths[pkg.Path] = true
		for _, f := range pkg.Files {
			p.addFile(pkg, f)
		}
	}
	p.findAPI()
	for _, pkg := range pkgs {
		p.pkg = pkg
		for _, f := range pkg.Files {
			p.file = p.files[p.position(f.FileStart).Filename]
			p.visit(f)
		}
	}
	p.blockConstrained()
	p.uniteSameNames()
	p.blockLengths()
	p.blockUnclaimed()
	p.blockUnseen()
	p.blockGlobals()
	p.uniteBoxed()
	return p.report()
}

func (p *program) addFile(pkg *Package, f *ast.File) {
	name := p.position(f.FileStart).Filename
	entry := p.files[name]
	if entry == nil {
		entry = &file{name: name, ast: f, isTest: strings.HasSuffix(name, "_test.go"), replacements: make(map[int]replacement)}
		switch {
		case p.fromCgo(f):
			entry.refusal = "the file uses cgo"
		case ast.IsGenerated(f):
			entry.refusal = "the file is generated"
		case importsPath(f, "C"):
			entry.refusal = "the file uses cgo"
		case pkg.Untouched:
			entry.refusal = "no pattern matches its package"
		}
		p.files[name] = entry
	}
	entry.packages = append(entry.packages, pkg)
	if pos := findLeakCheck(pkg, f); pos.IsValid() {
		entry.leakCheck = pos
	}
}

// position returns the file and offset of pos. It ignores line directives.
func (p *program) position(pos token.Pos) token.Position { return p.fset.PositionFor(pos, false) }

// source returns the file and offset of pos for the report. If cgo generated the file,
// source returns the position in the original file.
func (p *program) source(pos token.Pos) token.Position {
	at := p.position(pos)
	if f := p.files[at.Filename]; f != nil && p.fromCgo(f.ast) {
		return p.fset.Position(pos)
	}
	return at
}

// fromCgo reports whether cgo generated the file.
func (p *program) fromCgo(f *ast.File) bool {
	if len(f.Comments) == 0 || !strings.Contains(f.Comments[0].Text(), "generated by cmd/cgo") {
		return false
	}
	return p.position(f.Name.Pos()).Filename != p.fset.Position(f.Name.Pos()).Filename
}

func (p *program) key(pos token.Pos, kind byte) key {
	at := p.position(pos)
	return key{at.Filename, at.Line, at.Column, kind}
}

// importsPath reports whether the file imports the package with the given path.
func importsPath(f *ast.File, path string) bool {
	return slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"`+path+`"` })
}

// qualified returns b if sel is a.b and a is the package with the given path. Else it
// returns "".
func qualified(info *types.Info, sel *ast.SelectorExpr, path string) string {
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	if pn, ok := info.Uses[id].(*types.PkgName); ok && pn.Imported().Path() == path {
		return sel.Sel.Name
	}
	return ""
}

const goleak = "go.uber.org/goleak"

// findLeakCheck returns where a file looks for leaked goroutines: it imports goleak, or
// counts or lists goroutines. Else it returns NoPos.
func findLeakCheck(pkg *Package, f *ast.File) token.Pos {
	if importsPath(f, goleak) {
		return f.Package
	}
	found := token.NoPos
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || found.IsValid() {
			return !found.IsValid()
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		constantArg := func(i int) string {
			if i >= len(call.Args) {
				return ""
			}
			tv := pkg.Info.Types[call.Args[i]]
			if tv.Value == nil {
				return ""
			}
			return tv.Value.ExactString()
		}
		if qualified(pkg.Info, sel, "runtime") == "NumGoroutine" ||
			qualified(pkg.Info, sel, "runtime") == "Stack" && constantArg(1) == "true" ||
			qualified(pkg.Info, sel, "runtime/pprof") == "Lookup" && constantArg(0) == `"goroutine"` {
			found = call.Pos()
		}
		return true
	})
	return found
}
