package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

const synctestPath = "testing/synctest"

// globalValue is a package variable, or a value in a sync.Pool. It may outlive a test.
type globalValue struct {
	pkgPath     string // of the package that declares it
	pos         token.Pos
	typ         types.Type // of its value
	node        *node      // of the timers in t, or nil
	description string     // the name in the report
}

// blockGlobalValues prevents the rewrite of timers in package variables and pools that a
// synctest bubble may use. If such a timer is reset in a bubble, package time and package
// timer use different clocks.
func (p *program) blockGlobalValues() {
	pathsInBubbles := p.findPathsInBubbles()
	if len(pathsInBubbles) == 0 {
		return
	}
	for _, pkg := range p.pkgs {
		scope := pkg.Types.Scope()
		for _, name := range scope.Names() {
			if v, ok := scope.Lookup(name).(*types.Var); ok {
				p.addGlobalValue(pkg.Path, v.Pos(), v.Type(), func() *node { return p.nodeOfObject(v) }, "the package's variable "+name)
			}
		}
	}
	for _, g := range p.globals {
		if pathsInBubbles[withoutTestSuffix(g.pkgPath)] {
			reason := g.description + " holds it, and a test may use it inside and outside a testing/synctest bubble"
			p.blockReachableTimers(g.typ, g.node, blocker{g.pos, reason}, make(map[*types.Named]bool))
		}
	}
}

func (p *program) addGlobalValue(path string, pos token.Pos, t types.Type, n func() *node, description string) {
	if t == nil {
		return
	}
	g := globalValue{path, pos, t, nil, description}
	if hasTimer(t) {
		g.node = n()
	}
	p.globals = append(p.globals, g)
}

// blockReachableTimers prevents the rewrite of every timer that code can reach from a
// value of type t through fields, elements and pointers. b is the reason, n the node of
// the timers in t itself.
func (p *program) blockReachableTimers(t types.Type, n *node, b blocker, seen map[*types.Named]bool) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if timerTypeName(t) != "" {
			n.addBlocker(b.pos, b.reason)
			return
		}
		for arg := range t.TypeArgs().Types() {
			p.blockReachableTimers(arg, n, b, seen)
		}
		if pkg := t.Obj().Pkg(); pkg != nil && p.pkgPaths[pkg.Path()] && !seen[t] {
			seen[t] = true
			p.blockReachableTimers(t.Underlying(), p.nodeOfNamed(t), b, seen)
		}
	case *types.Pointer:
		p.blockReachableTimers(t.Elem(), n, b, seen)
	case *types.Slice:
		p.blockReachableTimers(t.Elem(), n, b, seen)
	case *types.Array:
		p.blockReachableTimers(t.Elem(), n, b, seen)
	case *types.Chan:
		p.blockReachableTimers(t.Elem(), n, b, seen)
	case *types.Map:
		p.blockReachableTimers(t.Key(), n, b, seen)
		p.blockReachableTimers(t.Elem(), n, b, seen)
	case *types.Struct:
		for f := range t.Fields() {
			p.blockReachableTimers(f.Type(), p.nodeOfField(f, n), b, seen)
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
	p.addGlobalValue(p.pkg.Path, e.Pos(), p.typeOf(e), func() *node { return p.nodeOf(e) }, "a sync.Pool")
}

// findPathsInBubbles returns the paths of the packages that may run in a testing/synctest
// bubble.
func (p *program) findPathsInBubbles() map[string]bool {
	g := p.importGraph()
	// Packages that import synctest, directly or through others.
	synctestImporters := map[string]bool{synctestPath: true}
	for path := range p.opts.Bubbles {
		synctestImporters[path] = true
	}
	for changed := true; changed; {
		changed = false
		for path, deps := range g.withoutTests {
			for dep := range deps {
				if synctestImporters[dep] && !synctestImporters[path] {
					synctestImporters[path], changed = true, true
				}
			}
		}
	}
	// The paths of packages that import one of these, and of all packages that they import.
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
			if synctestImporters[dep] {
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
		path = withoutTestSuffix(path)
		graphs := []map[string]map[string]bool{g.withoutTests, g.withTests}
		if strings.HasSuffix(p.positionOf(f.FileStart).Filename, "_test.go") {
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
			if f := p.parseUnseenFile(name); f != nil {
				addImports(pkg.Path, f)
			}
		}
	}
	for _, name := range p.opts.Unseen {
		if f := p.parseUnseenFile(name); f != nil {
			addImports("\x00"+filepath.Dir(name), f) // a path that nothing imports
		}
	}
	return g
}

// withoutTestSuffix returns path without the suffix _test of an external test package.
func withoutTestSuffix(path string) string { return strings.TrimSuffix(path, "_test") }

// comparePos returns a negative number if position a is before b, a positive one if after.
func (p *program) comparePos(a, b token.Pos) int {
	return comparePositions(p.positionOf(a), p.positionOf(b))
}
