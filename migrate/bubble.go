package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

const synctest = "testing/synctest"

// global is a package variable, or a value in a sync.Pool. It may outlive a test.
type global struct {
	path string // of the package that declares it
	pos  token.Pos
	t    types.Type // of its value
	node *node      // of the timers in t, or nil
	desc string     // the name in the report
}

// blockGlobals prevents the rewrite of timers in package variables and pools that a
// synctest bubble may use. If such a timer is reset in a bubble, package time and package
// timer use different clocks.
func (p *program) blockGlobals() {
	pathsInBubbles := p.packagesInBubbles()
	if len(pathsInBubbles) == 0 {
		return
	}
	for _, pkg := range p.pkgs {
		scope := pkg.Types.Scope()
		for _, name := range scope.Names() {
			if v, ok := scope.Lookup(name).(*types.Var); ok {
				p.addGlobal(pkg.Path, v.Pos(), v.Type(), func() *node { return p.nodeOfObject(v) }, "the package's variable "+name)
			}
		}
	}
	for _, g := range p.globals {
		if pathsInBubbles[plainPath(g.path)] {
			reason := g.desc + " holds it, and a test may use it inside and outside a testing/synctest bubble"
			p.blockReachable(g.t, g.node, block{g.pos, reason}, make(map[*types.Named]bool))
		}
	}
}

func (p *program) addGlobal(path string, pos token.Pos, t types.Type, n func() *node, desc string) {
	if t == nil {
		return
	}
	g := global{path, pos, t, nil, desc}
	if hasTimer(t) {
		g.node = n()
	}
	p.globals = append(p.globals, g)
}

// blockReachable prevents the rewrite of every timer that code can reach from a value of
// type t through fields, elements and pointers. b is the reason, n the node of the timers
// in t itself.
func (p *program) blockReachable(t types.Type, n *node, b block, seen map[*types.Named]bool) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if timerType(t) != "" {
			n.block(b.pos, b.reason)
			return
		}
		for arg := range t.TypeArgs().Types() {
			p.blockReachable(arg, n, b, seen)
		}
		if pkg := t.Obj().Pkg(); pkg != nil && p.paths[pkg.Path()] && !seen[t] {
			seen[t] = true
			p.blockReachable(t.Underlying(), p.nodeOfNamed(t), b, seen)
		}
	case *types.Pointer:
		p.blockReachable(t.Elem(), n, b, seen)
	case *types.Slice:
		p.blockReachable(t.Elem(), n, b, seen)
	case *types.Array:
		p.blockReachable(t.Elem(), n, b, seen)
	case *types.Chan:
		p.blockReachable(t.Elem(), n, b, seen)
	case *types.Map:
		p.blockReachable(t.Key(), n, b, seen)
		p.blockReachable(t.Elem(), n, b, seen)
	case *types.Struct:
		for f := range t.Fields() {
			p.blockReachable(f.Type(), p.nodeOfField(f, n), b, seen)
		}
	}
}

// addPoolPut records the argument of a call of sync.Pool.Put.
func (p *program) addPoolPut(n *ast.CallExpr) {
	sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok || len(n.Args) != 1 {
		return
	}
	if f, ok := p.pkg.Info.Uses[sel.Sel].(*types.Func); ok && f.FullName() == "(*sync.Pool).Put" {
		p.addPoolValue(n.Args[0])
	}
}

// addPoolNew records the value that the New function of a sync.Pool returns.
func (p *program) addPoolNew(n *ast.ReturnStmt, stack []ast.Node) {
	for i := len(stack) - 1; i > 1; i-- {
		if _, ok := stack[i].(*ast.FuncLit); !ok {
			continue
		}
		if lit, ok := stack[i-2].(*ast.CompositeLit); ok && len(n.Results) == 1 {
			if t := p.typeOf(lit); t != nil && t.String() == "sync.Pool" {
				p.addPoolValue(n.Results[0])
			}
		}
		return
	}
}

// addPoolValue records that a sync.Pool may hold the value of e.
func (p *program) addPoolValue(e ast.Expr) {
	p.addGlobal(p.pkg.Path, e.Pos(), p.typeOf(e), func() *node { return p.nodeOf(e) }, "a sync.Pool")
}

// packagesInBubbles returns the paths of the packages that may run in a testing/synctest
// bubble.
func (p *program) packagesInBubbles() map[string]bool {
	g := p.importGraph()
	// Packages that import synctest, directly or through others.
	helpers := map[string]bool{synctest: true}
	for path := range p.opts.Bubbles {
		helpers[path] = true
	}
	for changed := true; changed; {
		changed = false
		for path, deps := range g.withoutTests {
			for dep := range deps {
				if helpers[dep] && !helpers[path] {
					helpers[path], changed = true, true
				}
			}
		}
	}
	// The paths of packages that import a helper, and of all packages that they import.
	pathsInBubbles := make(map[string]bool)
	var add func(path string)
	add = func(path string) {
		if !pathsInBubbles[path] {
			pathsInBubbles[path] = true
			for dep := range g.withoutTests[path] {
				add(dep)
			}
		}
	}
	for path, imports := range g.withTests {
		for dep := range imports {
			if helpers[dep] {
				add(path)
				for other := range imports {
					add(other)
				}
			}
		}
	}
	return pathsInBubbles
}

// importGraph maps the path of each package to the paths that it imports, without and with
// the imports of its tests.
type importGraph struct{ withoutTests, withTests map[string]map[string]bool }

func (p *program) importGraph() importGraph {
	g := importGraph{make(map[string]map[string]bool), make(map[string]map[string]bool)}
	addImports := func(path string, f *ast.File) {
		path = plainPath(path)
		graphs := []map[string]map[string]bool{g.withoutTests, g.withTests}
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
			addImports(pkg.Path, f)
		}
		for _, name := range pkg.Unseen {
			if f := p.parseUnseen(name); f != nil {
				addImports(pkg.Path, f)
			}
		}
	}
	for _, name := range p.opts.Unseen {
		if f := p.parseUnseen(name); f != nil {
			addImports("\x00"+filepath.Dir(name), f) // a path that nothing imports
		}
	}
	return g
}

// plainPath returns path without the suffix _test of an external test package.
func plainPath(path string) string { return strings.TrimSuffix(path, "_test") }

// compare returns a negative number if position a is before b, a positive one if after.
func (p *program) compare(a, b token.Pos) int {
	return comparePositions(p.position(a), p.position(b))
}
