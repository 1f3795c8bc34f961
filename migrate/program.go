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

	// unseenImporters says that packages that are not analyzed may import the analyzed
	// ones.
	unseenImporters bool
}

// sourceKey is a source position. If a file is type-checked twice, with and without
// tests, a declaration has two types.Objects but one key.
type sourceKey struct {
	file      string
	line, col int
	kind      byte // 'o' for an object, 'e' for an expression
}

// program holds the state of one analysis of several packages.
type program struct {
	fset     *token.FileSet
	opts     Options
	pkgPaths map[string]bool // paths of the analyzed packages
	pkgs     []*Package

	nodes           map[sourceKey]*node
	sites           map[sourceKey]*site
	files           map[string]*file
	unitedTypeExprs map[sourceKey]bool          // written timer types that belong to a node: see uniteTypeExpr
	elidedLiterals  map[*ast.CompositeLit]*node // literals without a type, such as {} in []T{{}}
	typeUses        map[sourceKey]*typeUse
	unseenFiles     map[string]*ast.File // files that were not type-checked, by name
	methods         map[string][]*node   // methods whose types contain a timer, by name

	apiTypes     map[types.Type]bool // types that other modules can reach
	apiTypeNames map[sourceKey]bool  // declarations of apiTypes

	// toInterface are the timers that become interface values. fromInterface are the type
	// assertions that return timers.
	toInterface, fromInterface []interfaceConversion
	typeArgNodes               []*node // type arguments that contain timers
	// hasGenericConversion says that generic code converts its values to interface values
	// or back.
	hasGenericConversion bool

	lenCallPositions []token.Pos // calls of len or cap on a channel that may be a timer's
	storedChannels   []*node     // timers whose channel is stored or passed on

	globals []globalValue // see blockGlobalValues

	// The fields below describe the code that is being visited.

	pkg        *Package
	file       *file
	currentPos token.Pos
}

// file is a source file and what the analysis knows about it.
type file struct {
	name         string
	ast          *ast.File
	packages     []*Package // the packages that contain it
	isTest       bool
	refusal      string              // why the file must not change, or empty
	leakCheckPos token.Pos           // where it looks for leaked goroutines, or NoPos
	replacements map[int]replacement // by offset
}

// replacement replaces the package name in a qualified identifier, such as time in
// time.Timer.
type replacement struct {
	newPath string // import path of the new package
	oldLen  int    // length of the old name
}

// Analyze decides which timers of the packages can be rewritten. The packages must be
// type-checked together, with the file set fset.
func Analyze(fset *token.FileSet, pkgs []*Package, opts Options) *Report {
	p := &program{
		fset:            fset,
		opts:            opts,
		pkgPaths:        make(map[string]bool),
		pkgs:            pkgs,
		nodes:           make(map[sourceKey]*node),
		sites:           make(map[sourceKey]*site),
		files:           make(map[string]*file),
		unitedTypeExprs: make(map[sourceKey]bool),
		elidedLiterals:  make(map[*ast.CompositeLit]*node),
		typeUses:        make(map[sourceKey]*typeUse),
		unseenFiles:     make(map[string]*ast.File),
		methods:         make(map[string][]*node),

		apiTypes:     make(map[types.Type]bool),
		apiTypeNames: make(map[sourceKey]bool),
	}
	for _, pkg := range pkgs {
		p.pkgPaths[pkg.Path] = true
		for _, f := range pkg.Files {
			p.addFile(pkg, f)
		}
	}
	p.findAPITypes()
	for _, pkg := range pkgs {
		p.pkg = pkg
		for _, f := range pkg.Files {
			p.file = p.files[p.positionOf(f.FileStart).Filename]
			p.visitFile(f)
		}
	}
	p.blockConstrainedTypeArgs()
	p.uniteSameNamedMethods()
	p.blockStoredChannels()
	p.blockUnfollowedTypes()
	p.blockUsedInUnseenFiles()
	p.blockGlobalValues()
	p.uniteInterfaceConversions()
	return p.buildReport()
}

func (p *program) addFile(pkg *Package, f *ast.File) {
	name := p.positionOf(f.FileStart).Filename
	analyzedFile := p.files[name]
	if analyzedFile == nil {
		analyzedFile = &file{name: name, ast: f, isTest: strings.HasSuffix(name, "_test.go"), replacements: make(map[int]replacement)}
		switch {
		case p.isFromCgo(f):
			analyzedFile.refusal = "the file uses cgo"
		case ast.IsGenerated(f):
			analyzedFile.refusal = "the file is generated"
		case importsPath(f, "C"):
			analyzedFile.refusal = "the file uses cgo"
		case pkg.Untouched:
			analyzedFile.refusal = "no pattern matches its package"
		}
		p.files[name] = analyzedFile
	}
	analyzedFile.packages = append(analyzedFile.packages, pkg)
	if pos := findLeakCheck(pkg, f); pos.IsValid() {
		analyzedFile.leakCheckPos = pos
	}
}

// positionOf returns the file and offset of pos. It ignores line directives.
func (p *program) positionOf(pos token.Pos) token.Position { return p.fset.PositionFor(pos, false) }

// reportPosition returns the file and offset of pos for the report. If cgo generated the
// file, reportPosition returns the position in the original file.
func (p *program) reportPosition(pos token.Pos) token.Position {
	at := p.positionOf(pos)
	if f := p.files[at.Filename]; f != nil && p.isFromCgo(f.ast) {
		return p.fset.Position(pos)
	}
	return at
}

// isFromCgo reports whether cgo generated the file.
func (p *program) isFromCgo(f *ast.File) bool {
	if len(f.Comments) == 0 || !strings.Contains(f.Comments[0].Text(), "generated by cmd/cgo") {
		return false
	}
	return p.positionOf(f.Name.Pos()).Filename != p.fset.Position(f.Name.Pos()).Filename
}

func (p *program) keyAt(pos token.Pos, kind byte) sourceKey {
	at := p.positionOf(pos)
	return sourceKey{at.Filename, at.Line, at.Column, kind}
}

// importsPath reports whether the file imports the package with the given path.
func importsPath(f *ast.File, path string) bool {
	return slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"`+path+`"` })
}

// qualifiedName returns b if sel is a.b and a is the package with the given path. Else it
// returns "".
func qualifiedName(info *types.Info, sel *ast.SelectorExpr, path string) string {
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	if pn, ok := info.Uses[id].(*types.PkgName); ok && pn.Imported().Path() == path {
		return sel.Sel.Name
	}
	return ""
}

const goleakPath = "go.uber.org/goleak"

// findLeakCheck returns where a file looks for leaked goroutines: it imports goleak, or
// counts or lists goroutines. Else it returns NoPos.
func findLeakCheck(pkg *Package, f *ast.File) token.Pos {
	if importsPath(f, goleakPath) {
		return f.Package
	}
	foundPos := token.NoPos
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || foundPos.IsValid() {
			return !foundPos.IsValid()
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
		if qualifiedName(pkg.Info, sel, "runtime") == "NumGoroutine" ||
			qualifiedName(pkg.Info, sel, "runtime") == "Stack" && constantArg(1) == "true" ||
			qualifiedName(pkg.Info, sel, "runtime/pprof") == "Lookup" && constantArg(0) == `"goroutine"` {
			foundPos = call.Pos()
		}
		return true
	})
	return foundPos
}
