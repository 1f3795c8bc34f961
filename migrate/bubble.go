package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

const synctest = "testing/synctest"

// keeper is a package variable or a pool: its values may outlive the function that
// stored them.
type keeper struct {
	path string // of the package that declares it
	pos  token.Pos
	t    types.Type // type of the values
	node *node      // of the timers in t, or nil
	what string
}

// blockKept blocks timers that package variables or pools hold, directly or through
// structs, in packages that a synctest bubble can reach. A timer that is made outside a
// bubble and reset inside it belongs to neither.
func (p *program) blockKept() {
	reached := p.reachedByBubbles()
	if len(reached) == 0 {
		return
	}
	for _, pkg := range p.pkgs {
		scope := pkg.Types.Scope()
		for _, name := range scope.Names() {
			if v, ok := scope.Lookup(name).(*types.Var); ok {
				p.addKeeper(pkg.Path, v.Pos(), v.Type(), func() *node { return p.object(v) }, "the package's variable "+name)
			}
		}
	}
	for _, k := range p.keepers {
		if reached[plainPath(k.path)] {
			reason := k.what + " holds it, and a test may use it inside and outside a testing/synctest bubble"
			p.blockIn(k.t, k.node, block{k.pos, reason}, make(map[*types.Named]bool))
		}
	}
}

func (p *program) addKeeper(path string, pos token.Pos, t types.Type, n func() *node, what string) {
	if t == nil {
		return
	}
	k := keeper{path, pos, t, nil, what}
	if mentions(t) {
		k.node = n()
	}
	p.keepers = append(p.keepers, k)
}

// blockIn blocks the timers that code can reach from a value of type t, except those
// that functions return. n is the node of the timers in t itself.
func (p *program) blockIn(t types.Type, n *node, b block, seen map[*types.Named]bool) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if timerType(t) != "" {
			n.block(b.pos, b.reason)
			return
		}
		for arg := range t.TypeArgs().Types() {
			p.blockIn(arg, n, b, seen)
		}
		if pkg := t.Obj().Pkg(); pkg != nil && p.paths[pkg.Path()] && !seen[t] {
			seen[t] = true
			p.blockIn(t.Underlying(), p.definedNode(t), b, seen)
		}
	case *types.Pointer:
		p.blockIn(t.Elem(), n, b, seen)
	case *types.Slice:
		p.blockIn(t.Elem(), n, b, seen)
	case *types.Array:
		p.blockIn(t.Elem(), n, b, seen)
	case *types.Chan:
		p.blockIn(t.Elem(), n, b, seen)
	case *types.Map:
		p.blockIn(t.Key(), n, b, seen)
		p.blockIn(t.Elem(), n, b, seen)
	case *types.Struct:
		for f := range t.Fields() {
			p.blockIn(f.Type(), p.fieldNode(f, n), b, seen)
		}
	}
}

// addPooled notes the value that a call puts into a sync.Pool.
func (p *program) addPooled(n *ast.CallExpr) {
	sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok || len(n.Args) != 1 {
		return
	}
	if f, ok := p.pkg.Info.Uses[sel.Sel].(*types.Func); ok && f.FullName() == "(*sync.Pool).Put" {
		p.pool(n.Args[0])
	}
}

// addPoolNew notes the value that the New function of a sync.Pool returns.
func (p *program) addPoolNew(n *ast.ReturnStmt, stack []ast.Node) {
	for i := len(stack) - 1; i > 1; i-- {
		if _, ok := stack[i].(*ast.FuncLit); !ok {
			continue
		}
		if lit, ok := stack[i-2].(*ast.CompositeLit); ok && len(n.Results) == 1 {
			if t := p.typeOf(lit); t != nil && t.String() == "sync.Pool" {
				p.pool(n.Results[0])
			}
		}
		return
	}
}

// pool notes that a sync.Pool keeps e.
func (p *program) pool(e ast.Expr) {
	p.addKeeper(p.pkg.Path, e.Pos(), p.typeOf(e), func() *node { return p.nodeOf(e) }, "a sync.Pool")
}

// reachedByBubbles returns the packages that a test may run inside a bubble of
// testing/synctest. A package makes bubbles if it imports synctest, directly or through
// other packages. The result contains every package that imports one of these, and
// everything it imports.
func (p *program) reachedByBubbles() map[string]bool {
	g := p.importGraph()
	makers := map[string]bool{synctest: true}
	for path := range p.opts.Bubbles {
		makers[path] = true
	}
	for more := true; more; {
		more = false
		for path, deps := range g.own {
			for dep := range deps {
				if makers[dep] && !makers[path] {
					makers[path], more = true, true
				}
			}
		}
	}
	reached := make(map[string]bool)
	var reach func(path string)
	reach = func(path string) {
		if !reached[path] {
			reached[path] = true
			for dep := range g.own[path] {
				reach(dep)
			}
		}
	}
	for path, all := range g.all {
		for dep := range all {
			if makers[dep] {
				reach(path)
				for other := range all {
					reach(other)
				}
			}
		}
	}
	return reached
}

// importGraph records what each package imports: by its own files alone, and with its
// tests.
type importGraph struct{ own, all map[string]map[string]bool }

func (p *program) importGraph() importGraph {
	g := importGraph{make(map[string]map[string]bool), make(map[string]map[string]bool)}
	add := func(path string, f *ast.File) {
		path = plainPath(path)
		graphs := []map[string]map[string]bool{g.own, g.all}
		if strings.HasSuffix(p.position(f.FileStart).Filename, "_test.go") {
			graphs = graphs[1:]
		}
		for _, graph := range graphs {
			if graph[path] == nil {
				graph[path] = make(map[string]bool)
			}
			for _, s := range f.Imports {
				graph[path][importPath(s)] = true
			}
		}
	}
	for _, pkg := range p.pkgs {
		for _, f := range pkg.Files {
			add(pkg.Path, f)
		}
		for _, name := range pkg.Unseen {
			if f := p.parseUnseen(name); f != nil {
				add(pkg.Path, f)
			}
		}
	}
	for _, name := range p.opts.Unseen {
		if f := p.parseUnseen(name); f != nil {
			add("\x00"+filepath.Dir(name), f) // no package imports it
		}
	}
	return g
}

// plainPath returns the path of the package under test if path names an external test
// package, and else path itself.
func plainPath(path string) string { return strings.TrimSuffix(path, "_test") }

// compare is negative if position a comes before b, positive if it comes after.
func (p *program) compare(a, b token.Pos) int {
	return comparePositions(p.position(a), p.position(b))
}
