package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A Package is a type-checked package: what an analysis.Pass has, and what
// go/packages loads.
type Package struct {
	Path  string
	Files []*ast.File
	Types *types.Package
	Info  *types.Info

	// Unseen are the Go files of the package's folder that are not among Files:
	// those for other systems, and the tests where only the package itself was
	// loaded. They are not changed, and neither is what they may use of the package,
	// and of what other packages export.
	Unseen []string
	// Untouched says that the package is there to be looked at, not to be changed.
	Untouched bool
}

// Options choose what is rewritten.
type Options struct {
	// Tests has call sites in tests rewritten too. Without it, of tests only that
	// is rewritten which shares a type with the code that they test.
	Tests bool
	// Exported has types rewritten that are part of a package's API: exported, in
	// a package that is neither internal nor a program.
	Exported bool
	// Worth leaves call sites as they are that are not worth it, unless they share
	// a type with one that is.
	Worth bool
	// ReadFile reads a file by its name: os.ReadFile if it is nil.
	ReadFile func(name string) ([]byte, error)

	// Unseen are Go files of the module that are in no folder of the packages, all
	// for other systems. What they may use is not changed.
	Unseen []string

	// Bubbles are packages of other modules that get at testing/synctest: their
	// functions may run what they are given inside a bubble.
	Bubbles map[string]bool

	// alone says that nothing is known of the packages that import these.
	alone bool
}

// key is a place in the source. A file may be part of several packages, the one
// and the one with its tests: what stands there has several objects, but one key.
type key struct {
	file      string
	line, col int
	kind      byte // 'o' for an object, 'e' for an expression
}

// program is what is looked at together.
type program struct {
	fset *token.FileSet
	opts Options
	set  map[string]bool // paths of the packages
	pkgs []*Package

	nodes   map[key]*node
	sites   map[key]*site
	files   map[string]*file
	claimed map[key]bool                // mentions of which the owner is known
	elided  map[*ast.CompositeLit]*node // literals whose type is not written
	marks   map[key]*mark
	unseen  map[string]*ast.File // files that were not type-checked, by name
	methods map[string][]*node   // by name, of those whose types have a timer

	api      map[types.Type]bool // what other modules can get at
	apiNames map[key]bool        // where types of api are declared

	// boxed are timers that became interface values, unboxed the type assertions
	// that make timers of them again.
	boxed, unboxed []boxing
	// instances are type arguments that have timers. If generic is set, a value whose
	// type is made of type parameters becomes an interface value somewhere, or comes
	// from one: it may be of any of these.
	instances []*node
	generic   bool

	// lengths are where len or cap is taken of a channel that may be a timer's,
	// channels the timers whose channel gets to a variable or the like.
	lengths  []token.Pos
	channels []*node

	// keepers are what may outlive a test: see blockKept.
	keepers []keeper

	// What is being visited.

	pkg  *Package
	file *file
	here token.Pos
}

// file is what is known of a source file.
type file struct {
	name  string
	ast   *ast.File
	in    []*Package // that it is part of
	test  bool
	fixed string // why it must not be changed, or empty
	leak  token.Pos
	cuts  map[int]cut // package names to be replaced, by their offset
}

// cut is a package's name in front of an identifier, to be replaced by another's.
type cut struct {
	to    string // the path of the package that takes its place
	width int    // of the name
}

// Analyze looks at packages together and decides what of them can use package
// timer. Packages that import one another must have been type-checked together,
// with one file set.
func Analyze(fset *token.FileSet, pkgs []*Package, opts Options) *Report {
	p := &program{
		fset:    fset,
		opts:    opts,
		set:     make(map[string]bool),
		pkgs:    pkgs,
		nodes:   make(map[key]*node),
		sites:   make(map[key]*site),
		files:   make(map[string]*file),
		claimed: make(map[key]bool),
		elided:  make(map[*ast.CompositeLit]*node),
		marks:   make(map[key]*mark),
		unseen:  make(map[string]*ast.File),
		methods: make(map[string][]*node),

		api:      make(map[types.Type]bool),
		apiNames: make(map[key]bool),
	}
	for _, pkg := range pkgs {
		p.set[pkg.Path] = true
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
		known = &file{name: name, ast: f, test: strings.HasSuffix(name, "_test.go"), cuts: make(map[int]cut)}
		switch {
		case p.fromCgo(f):
			known.fixed = "the file uses cgo"
		case ast.IsGenerated(f):
			known.fixed = "the file is generated"
		case importsPath(f, "C"):
			known.fixed = "the file uses cgo"
		case pkg.Untouched:
			known.fixed = "the package was not named"
		}
		p.files[name] = known
	}
	known.in = append(known.in, pkg)
	if pos := leakCheck(pkg, f); pos.IsValid() {
		known.leak = pos
	}
}

// position is where something stands in its file, whatever line directives say.
func (p *program) position(pos token.Pos) token.Position { return p.fset.PositionFor(pos, false) }

// source is position for people: of what cgo has made of a file it is the place in the
// file itself.
func (p *program) source(pos token.Pos) token.Position {
	at := p.position(pos)
	if f := p.files[at.Filename]; f != nil && p.fromCgo(f.ast) {
		return p.fset.Position(pos)
	}
	return at
}

// fromCgo reports whether a file is what cgo has made of one.
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

// qualified returns the name that sel takes from the package of that path, or
// nothing.
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

// leakCheck returns where a file counts or lists goroutines, or no position.
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
