package migrate

import (
	"go/ast"
	"go/types"
	"strings"
)

// findAPITypes finds the types that other modules can reach through exported identifiers.
// These include unexported types, and types of internal packages.
func (p *program) findAPITypes() {
	if p.opts.Exported {
		return
	}
	for _, pkg := range p.pkgs {
		if pkg.Types.Name() == "main" || strings.HasSuffix(pkg.Types.Name(), "_test") || isInternalPath(pkg.Path) && !p.opts.unseenImporters {
			continue
		}
		scope := pkg.Types.Scope()
		for _, name := range scope.Names() {
			obj := scope.Lookup(name)
			if obj.Exported() && !strings.HasSuffix(p.positionOf(obj.Pos()).Filename, "_test.go") {
				p.addAPIType(obj.Type())
			}
		}
	}
}

// addAPIType adds a type to the API, with every type that code can reach from its values.
func (p *program) addAPIType(t types.Type) {
	if t == nil || p.apiTypes[t] {
		return
	}
	p.apiTypes[t] = true
	switch t := t.(type) {
	case *types.Alias:
		p.addAPIType(types.Unalias(t))
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			p.addAPIType(arg)
		}
		t = t.Origin()
		if t.Obj().Pkg() == nil || !p.pkgPaths[t.Obj().Pkg().Path()] {
			return
		}
		p.apiTypeNames[p.keyAt(t.Obj().Pos(), 'o')] = true
		p.addAPIType(t.Underlying())
		for tp := range t.TypeParams().TypeParams() {
			p.addAPIType(tp.Constraint())
		}
		for m := range t.Methods() {
			if m.Exported() {
				p.addAPIType(m.Type())
			}
		}
	case *types.Pointer:
		p.addAPIType(t.Elem())
	case *types.Slice:
		p.addAPIType(t.Elem())
	case *types.Array:
		p.addAPIType(t.Elem())
	case *types.Chan:
		p.addAPIType(t.Elem())
	case *types.Map:
		p.addAPIType(t.Key())
		p.addAPIType(t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			p.addAPIType(v.Type())
		}
	case *types.Signature:
		for tp := range t.TypeParams().TypeParams() {
			p.addAPIType(tp.Constraint())
		}
		p.addAPIType(t.Params())
		p.addAPIType(t.Results())
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				p.addAPIType(f.Type())
			}
		}
	case *types.Interface:
		for e := range t.EmbeddedTypes() {
			p.addAPIType(e)
		}
		for m := range t.Methods() {
			if m.Exported() {
				p.addAPIType(m.Type())
			}
		}
	case *types.Union:
		for term := range t.Terms() {
			p.addAPIType(term.Type())
		}
	}
}

// isAPIType reports whether other modules can reach the type that id declares.
func (p *program) isAPIType(id *ast.Ident) bool { return p.apiTypeNames[p.keyAt(id.Pos(), 'o')] }
