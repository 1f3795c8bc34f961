package migrate

import (
	"go/ast"
	"go/types"
	"strings"
)

// findAPI finds the types that other modules can reach through exported identifiers. These
// include unexported types, and types of internal packages.
func (p *program) findAPI() {
	if p.opts.Exported {
		return
	}
	for _, pkg := range p.pkgs {
		if pkg.Types.Name() == "main" || strings.HasSuffix(pkg.Types.Name(), "_test") || isInternal(pkg.Path) && !p.opts.unseenImporters {
			continue
		}
		scope := pkg.Types.Scope()
		for _, name := range scope.Names() {
			obj := scope.Lookup(name)
			if obj.Exported() && !strings.HasSuffix(p.position(obj.Pos()).Filename, "_test.go") {
				p.addAPI(obj.Type())
			}
		}
	}
}

// addAPI adds a type to the API, with every type that code can reach from its values.
func (p *program) addAPI(t types.Type) {
	if t == nil || p.api[t] {
		return
	}
	p.api[t] = true
	switch t := t.(type) {
	case *types.Alias:
		p.addAPI(types.Unalias(t))
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			p.addAPI(arg)
		}
		t = t.Origin()
		if t.Obj().Pkg() == nil || !p.paths[t.Obj().Pkg().Path()] {
			return
		}
		p.apiNames[p.key(t.Obj().Pos(), 'o')] = true
		p.addAPI(t.Underlying())
		for tp := range t.TypeParams().TypeParams() {
			p.addAPI(tp.Constraint())
		}
		for m := range t.Methods() {
			if m.Exported() {
				p.addAPI(m.Type())
			}
		}
	case *types.Pointer:
		p.addAPI(t.Elem())
	case *types.Slice:
		p.addAPI(t.Elem())
	case *types.Array:
		p.addAPI(t.Elem())
	case *types.Chan:
		p.addAPI(t.Elem())
	case *types.Map:
		p.addAPI(t.Key())
		p.addAPI(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			p.addAPI(v.Type())
		}
	case *types.Signature:
		for tp := range t.TypeParams().TypeParams() {
			p.addAPI(tp.Constraint())
		}
		p.addAPI(t.Params())
		p.addAPI(t.Results())
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				p.addAPI(f.Type())
			}
		}
	case *types.Interface:
		for e := range t.EmbeddedTypes() {
			p.addAPI(e)
		}
		for m := range t.Methods() {
			if m.Exported() {
				p.addAPI(m.Type())
			}
		}
	case *types.Union:
		for term := range t.Terms() {
			p.addAPI(term.Type())
		}
	}
}

// inAPI reports whether other modules can reach the type that id declares.
func (p *program) inAPI(id *ast.Ident) bool { return p.apiNames[p.key(id.Pos(), 'o')] }
