package migrate

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
)

const synctest = "testing/synctest"

// blockBubbles keeps contexts as they are that a test may make inside a bubble of
// testing/synctest: the default Scheduler cannot be used there. Package synctest makes
// bubbles, and so may the functions of what imports it, and so on. What a package that
// imports one of these gets at, its own functions among them, may run in one.
func (p *program) blockBubbles() {
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

	bubble := make(map[string]token.Pos) // by path, where a maker is imported
	var reach func(path string, pos token.Pos)
	reach = func(path string, pos token.Pos) {
		if old, ok := bubble[path]; ok && p.compare(old, pos) <= 0 {
			return
		}
		bubble[path] = pos
		for dep := range g.own[path] {
			reach(dep, pos)
		}
	}
	for path, all := range g.all {
		for dep, pos := range all {
			if makers[dep] {
				reach(path, pos)
				for other := range all {
					reach(other, pos)
				}
			}
		}
	}
	for _, s := range p.sites {
		if !strings.HasPrefix(s.call, "context.") {
			continue
		}
		for _, pkg := range s.file.in {
			if pos, ok := bubble[strings.TrimSuffix(pkg.Path, "_test")]; ok {
				s.node.block(pos, "a test may run it inside a testing/synctest bubble, where the default Scheduler cannot be used")
				break
			}
		}
	}
}

// importGraph is what the packages import, each with a place where it does: their own
// files, and all with their tests.
type importGraph struct {
	own, all map[string]map[string]token.Pos
}

func (p *program) importGraph() importGraph {
	g := importGraph{make(map[string]map[string]token.Pos), make(map[string]map[string]token.Pos)}
	add := func(path string, f *ast.File) {
		path = strings.TrimSuffix(path, "_test") // a test in a package of its own
		graphs := []map[string]map[string]token.Pos{g.own, g.all}
		if strings.HasSuffix(p.position(f.FileStart).Filename, "_test.go") {
			graphs = graphs[1:]
		}
		for _, graph := range graphs {
			if graph[path] == nil {
				graph[path] = make(map[string]token.Pos)
			}
			for _, s := range f.Imports {
				dep := importPath(s)
				if old, ok := graph[path][dep]; !ok || p.compare(s.Pos(), old) < 0 {
					graph[path][dep] = s.Pos()
				}
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

// compare compares two places: it is negative if a comes before b.
func (p *program) compare(a, b token.Pos) int {
	return comparePositions(p.position(a), p.position(b))
}
