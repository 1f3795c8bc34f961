package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A Package is a type-checked package, with the data that an analysis.Pass has or
// go/packages loads.
type Package struct {
	Path  string
	Files []*ast.File
	Types *types.Package
	Info  *types.Info

	// Unseen are the Go files of the package's folder that are not among Files: files
	// for other systems, and the tests if only the package itself was loaded. Analyze
	// does not change them, nor anything that they may use of this package or of what
	// other packages export.
	Unseen []string
	// Untouched says that the package is analyzed but not changed.
	Untouched bool
}

// Options choose what Analyze rewrites.
type Options struct {
	// Tests also rewrites call sites in tests. Without it, Analyze rewrites only the
	// parts of tests that share a type with the code under test.
	Tests bool
	// Exported also rewrites types that are part of a package's API: exported types of
	// a package that is neither internal nor a program.
	Exported bool
	// Worth rewrites only call sites whose Use is worth it, and those that share a type
	// with such a call site.
	Worth bool
	// ReadFile reads a file by its name. Nil means os.ReadFile.
	ReadFile func(name string) ([]byte, error)

	// Unseen are Go files of the module, for other systems, outside the folders of the
	// packages. Analyze does not change what they may use.
	Unseen []string

	// Bubbles are packages of other modules that import testing/synctest, directly or
	// through others. Their functions may run a callback inside a bubble.
	Bubbles map[string]bool

	// alone says that the packages that import the analyzed ones are unknown.
	alone bool
}

// key is a position in the source. A file may be part of both a package and its test
// variant: the same declaration then has two objects, but one key.
type key struct {
	file      string
	line, col int
	kind      byte // 'o' for an object, 'e' for an expression
}

// program holds the state of one analysis of several packages.
type program struct {
	fset  *token.FileSet
	opts  Options
	paths map[string]bool // of the packages
	pkgs  []*Package

	nodes    map[key]*node
	sites    map[key]*site
	files    map[string]*file
	claimed  map[key]bool                // timer types whose owner is known
	elided   map[*ast.CompositeLit]*node // literals whose type is not written
	typeUses map[key]*typeUse
	unseen   map[string]*ast.File // files that were not type-checked, by name
	methods  map[string][]*node   // methods whose types contain a timer, by name

	api      map[types.Type]bool // types that other modules can reach
	apiNames map[key]bool        // declarations of the types in api

	// boxed are the timers that became interface values. unboxed are the type
	// assertions that return timers.
	boxed, unboxed []boxing
	// instances are type arguments that contain timers. generic reports whether generic
	// code boxes or unboxes a value; the value may then be of any of the instances.
	instances []*node
	generic   bool

	// lengths are the calls of len or cap on a channel that may be a timer's. channels
	// are the timers whose channel is stored or passed on.
	lengths  []token.Pos
	channels []*node

	// keepers are the variables and pools that may outlive a test: see blockKept.
	keepers []keeper

	// The fields below describe what is being visited.

	pkg      *Package
	file     *file
	visiting token.Pos
}

// file is a source file and what the analysis knows about it.
type file struct {
	name         string
	ast          *ast.File
	packages     []*Package // those that the file is part of
	test         bool
	refusal      string // why the file must not change, or empty
	leak         token.Pos
	replacements map[int]replacement // by offset
}

// replacement replaces a package's name before an identifier.
type replacement struct {
	to    string // path of the new package
	width int    // length of the old name
}

// Analyze decides which timers of the packages can become package timer's. Packages
// that import one another must be type-checked together, with one file set.
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
	p.unifyMethods()
	p.blockLengths()
	p.blockUnclaimed()
	p.blockUnseen()
	p.blockKept()
	p.unifyBoxes()
	return p.report()
}

func (p *program) addFile(pkg *Package, f *ast.File) {
	name := p.position(f.FileStart).Filename
	known := p.files[name]
	if known == nil {
		known = &file{name: name, ast: f, test: strings.HasSuffix(name, "_test.go"), replacements: make(map[int]replacement)}
		switch {
		case p.fromCgo(f):
			known.refusal = "the file uses cgo"
		case ast.IsGenerated(f):
			known.refusal = "the file is generated"
		case importsPath(f, "C"):
			known.refusal = "the file uses cgo"
		case pkg.Untouched:
			known.refusal = "the package was not named"
		}
		p.files[name] = known
	}
	known.packages = append(known.packages, pkg)
	if pos := leakCheck(pkg, f); pos.IsValid() {
		known.leak = pos
	}
}

// position returns the file and offset of pos. It ignores line directives.
func (p *program) position(pos token.Pos) token.Position { return p.fset.PositionFor(pos, false) }

// source is position for reports: in a file that cgo generated it returns the position
// in the original file.
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

// importsPath reports whether the file imports the package of that path.
func importsPath(f *ast.File, path string) bool {
	return slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"`+path+`"` })
}

// qualified returns the name that sel selects from the package with that path, or "".
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

// leakCheck returns the position where a file counts or lists goroutines, or
// token.NoPos.
func leakCheck(pkg *Package, f *ast.File) token.Pos {
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
		arg := func(i int) string {
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
			qualified(pkg.Info, sel, "runtime") == "Stack" && arg(1) == "true" ||
			qualified(pkg.Info, sel, "runtime/pprof") == "Lookup" && arg(0) == `"goroutine"` {
			found = call.Pos()
		}
		return true
	})
	return found
}
