package migrate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The type checker finds what must be rewritten together. Each place where the source says
// time.Timer, time.NewTimer and so on starts in a class of its own. The analysis type-checks
// the package as if every class used another package: ticklessTag1.Timer,
// ticklessTag2.NewTimer. An error that names the types of two classes says that these must
// be rewritten together; the analysis joins them and checks again. An error that names one
// class says why it cannot be rewritten: it meets package time's type in code that does not
// change.

// A class is a set of call sites and written types that must be rewritten together.
type class struct {
	parent *class // a class that this one was joined with; nil for the representative
	number int

	// The fields below are used only in a representative.

	atoms      []atom
	sites      []*site
	blockers   []blocker
	stopCalled bool      // the program calls Stop of one of the timers
	newCallPos token.Pos // a call of NewTimer or NewTicker, or NoPos
}

// An atom is a place where the source says time.Timer, time.NewTimer, and the like.
type atom struct {
	file     *file
	pkgIdent *ast.Ident // the name before the dot
}

// A blocker is a reason not to rewrite a class.
type blocker struct {
	pos    token.Pos
	reason string // the text of the report
}

func (p *program) newClass() *class {
	c := &class{number: len(p.classes)}
	p.classes = append(p.classes, c)
	return c
}

// representative returns the class that c was joined with, or c.
func (c *class) representative() *class {
	for c.parent != nil {
		c = c.parent
	}
	return c
}

// unite joins two classes. It reports whether they were different.
func unite(a, b *class) bool {
	a, b = a.representative(), b.representative()
	if a == b {
		return false
	}
	b.parent = a
	a.atoms = append(a.atoms, b.atoms...)
	a.sites = append(a.sites, b.sites...)
	a.blockers = append(a.blockers, b.blockers...)
	a.stopCalled = a.stopCalled || b.stopCalled
	if !a.newCallPos.IsValid() {
		a.newCallPos = b.newCallPos
	}
	return true
}

// addBlocker records a reason not to rewrite the class.
func (c *class) addBlocker(pos token.Pos, reason string) {
	c = c.representative()
	if b := (blocker{pos, reason}); !slices.Contains(c.blockers, b) {
		c.blockers = append(c.blockers, b)
	}
}

const tagPrefix = "ticklessTag"

var tagPattern = regexp.MustCompile(tagPrefix + `(\d+)`)

// tagged is the package, type-checked with tags in place of package time.
type tagged struct {
	p      *program
	pkg    *types.Package
	info   *types.Info
	files  []*ast.File
	edits  map[*token.File]taggedFile
	errors []types.Error

	// The fields below are found by blockOtherBehavior.

	exposed      map[types.Object]bool // named types that other packages can reach
	hasAssertion bool                  // a type assertion or switch has a timer's type
	converted    []*class              // classes that become interface values, or that generic code handles
	channelLens  []token.Pos           // calls of len or cap on a channel that may be a timer's
	pooled       *class                // what the package's pools hold: see poolClass
	poolResults  map[types.Object]bool // variables that hold a pool's value, or (false) another
}

// taggedFile says what was changed in a file to tag it.
type taggedFile struct {
	file  *file
	edits []Edit
}

// findClasses joins the classes that must be rewritten together, and adds blockers to those
// that meet package time's types elsewhere.
func (p *program) findClasses() *tagged {
	for {
		t := p.typeCheck(func(c *class) string { return tagPrefix + strconv.Itoa(c.number) })
		united := false
		byError := t.classesByError()
		for _, classes := range byError {
			for i := 1; i < len(classes); i++ {
				united = unite(classes[0], classes[i]) || united
			}
		}
		if united {
			continue
		}
		for i, err := range t.errors {
			classes := byError[i]
			if len(classes) == 0 { // it can be any of them
				classes = p.classes
			}
			for _, c := range classes {
				c.addBlocker(t.originalPos(err.Pos), "it would not compile: "+tagPattern.ReplaceAllString(firstLine(err.Msg), "timer"))
			}
		}
		return t
	}
}

// namePattern matches names that no package name precedes.
var namePattern = regexp.MustCompile(`(?:^|[^.\w])(\w+)`)

// classesByError returns the classes that each error is about: those in its text, in the
// definitions of types that the text names, and in the arguments of a call that it is in.
func (t *tagged) classesByError() [][]*class {
	byType := make(map[string][]*class)
	for id, obj := range t.info.Defs {
		if _, ok := obj.(*types.TypeName); ok {
			byType[id.Name] = slices.Concat(byType[id.Name], t.classesOf(obj.Type()), t.classesOf(obj.Type().Underlying()))
		}
	}
	byError := make([][]*class, len(t.errors))
	for i, err := range t.errors {
		classes := t.p.classesIn(err.Msg)
		for _, m := range namePattern.FindAllStringSubmatch(err.Msg, -1) {
			classes = append(classes, byType[m[1]]...)
		}
		if len(classes) < 2 {
			for _, f := range t.files {
				if f.FileStart <= err.Pos && err.Pos < f.FileEnd {
					classes = append(classes, t.classesOfArguments(f, err.Pos)...)
				}
			}
		}
		byError[i] = classes
	}
	return byError
}

// classesOfArguments returns the classes in the innermost call around pos.
func (t *tagged) classesOfArguments(f *ast.File, pos token.Pos) (classes []*class) {
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil || n.Pos() > pos || n.End() <= pos {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok {
			classes = nil
			for _, arg := range call.Args {
				classes = append(classes, t.classesOf(t.info.TypeOf(arg))...)
			}
		}
		return true
	})
	return classes
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// classesIn returns the classes whose tags are in a text.
func (p *program) classesIn(text string) (classes []*class) {
	for _, m := range tagPattern.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil && n < len(p.classes) {
			classes = append(classes, p.classes[n].representative())
		}
	}
	return classes
}

// acceptCompiling returns those of the classes with which the rewritten package compiles:
// all, or else as many as it finds by trying one after the other. It adds a blocker to the
// others.
func (p *program) acceptCompiling(classes []*class) []*class {
	check := func(classes []*class) []types.Error {
		return p.typeCheck(func(c *class) string {
			if slices.Contains(classes, c) {
				return "ticklessTimer"
			}
			return ""
		}).errors
	}
	if len(check(classes)) == 0 {
		return classes
	}
	var accepted []*class
	for _, c := range classes {
		if errs := check(append(accepted, c)); len(errs) > 0 && len(c.atoms) > 0 {
			c.addBlocker(c.sites[0].sel.Pos(), "it would not compile: "+strings.ReplaceAll(firstLine(errs[0].Msg), "ticklessTimer", "timer"))
			continue
		}
		accepted = append(accepted, c)
	}
	return accepted
}

// typeCheck type-checks the package, with the package name nameOf(c) in each class c instead
// of time. An empty name changes nothing.
func (p *program) typeCheck(nameOf func(*class) string) *tagged {
	t := &tagged{p: p, edits: make(map[*token.File]taggedFile), exposed: make(map[types.Object]bool), poolResults: make(map[types.Object]bool), info: &types.Info{
		Types:      make(map[ast.Expr]types.TypeAndValue),
		Defs:       make(map[*ast.Ident]types.Object),
		Uses:       make(map[*ast.Ident]types.Object),
		Instances:  make(map[*ast.Ident]types.Instance),
		Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}}
	edits := make(map[*file][]Edit)
	for _, c := range p.classes {
		name := ""
		if c.parent == nil {
			name = nameOf(c)
		}
		if name == "" {
			continue
		}
		for _, a := range c.atoms {
			start := p.positionOf(a.pkgIdent.Pos()).Offset
			edits[a.file] = append(edits[a.file], Edit{start, start + len(a.pkgIdent.Name), name})
		}
	}
	for _, f := range p.files {
		t.files = append(t.files, t.tagFile(f, edits[f]))
	}
	conf := types.Config{Importer: p, Sizes: p.pkg.Sizes, FakeImportC: true, Error: func(err error) {
		if err, ok := err.(types.Error); ok && !err.Soft {
			t.errors = append(t.errors, err)
		}
	}}
	t.pkg, _ = conf.Check(p.pkg.Path, p.fset, t.files, t.info) // Error has them all
	return t
}

// tagFile returns the syntax of a file after the edits, with the imports that these need.
func (t *tagged) tagFile(f *file, edits []Edit) *ast.File {
	if len(edits) == 0 {
		return f.ast
	}
	imports := ""
	for _, e := range edits {
		if line := `; import ` + e.New + ` "` + e.New + `"`; !strings.Contains(imports, line) {
			imports += line
		}
	}
	afterPackage := t.p.positionOf(f.ast.Name.End()).Offset
	edits = append(edits, Edit{afterPackage, afterPackage, imports})
	slices.SortFunc(edits, func(a, b Edit) int { return a.Start - b.Start })
	src, err := t.p.readFile(f.name)
	if err == nil {
		var tagged *ast.File
		if tagged, err = parser.ParseFile(t.p.fset, f.name, applyEdits(src, edits), parser.SkipObjectResolution); err == nil {
			t.edits[t.p.fset.File(tagged.FileStart)] = taggedFile{f, edits}
			return tagged
		}
	}
	t.errors = append(t.errors, types.Error{Fset: t.p.fset, Pos: f.ast.Package, Msg: err.Error()})
	return f.ast
}

// originalPos returns the position in the original source.
func (t *tagged) originalPos(pos token.Pos) token.Pos {
	if !pos.IsValid() {
		return pos
	}
	tf := t.p.fset.File(pos)
	original, ok := t.edits[tf]
	if !ok {
		return pos
	}
	offset, added := tf.Offset(pos), 0
	for _, e := range original.edits {
		if e.Start+added >= offset {
			break
		}
		added += len(e.New) - (e.End - e.Start)
	}
	return original.file.ast.FileStart + token.Pos(offset-added)
}

// stubSource declares what rewritten packages use of package timer, which the module may not
// require yet.
const stubSource = `; import "time"
type Timer struct { C <-chan time.Time; unexported int }
func (*Timer) Stop() bool
func (*Timer) Reset(time.Duration) bool
type Ticker struct { C <-chan time.Time; unexported int }
func (*Ticker) Stop()
func (*Ticker) Reset(time.Duration)
func AfterFunc(time.Duration, func()) *Timer
func NewTimer(time.Duration) *Timer
func NewTicker(time.Duration) *Ticker
`

// Import returns a package that the tagged package imports.
func (p *program) Import(path string) (*types.Package, error) {
	if !strings.HasPrefix(path, "tickless") {
		return p.pkg.Importer.Import(path)
	}
	if path == "ticklessTimer" {
		if pkg, err := p.pkg.Importer.Import(TimerPath); err == nil {
			return pkg, nil
		}
	}
	if pkg := p.stubs[path]; pkg != nil {
		return pkg, nil
	}
	source := "package " + path + stubSource
	if path == "ticklessTimer" {
		source += "func (*Timer) Deadline() (time.Time, bool)\n"
	}
	f, err := parser.ParseFile(p.fset, path+".go", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	conf := types.Config{Importer: p, IgnoreFuncBodies: true}
	pkg, err := conf.Check(path, p.fset, []*ast.File{f}, nil)
	if err == nil {
		p.stubs[path] = pkg
	}
	return pkg, err
}
