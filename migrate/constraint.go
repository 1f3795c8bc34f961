package migrate

import (
	"go/ast"
	"go/types"
)

// blockConstrained blocks type arguments whose constraint lists types made of timers,
// because constraints are not rewritten. It also unites the methods that a constraint
// requires with the methods of the type argument, which may come from another module.
func (p *program) blockConstrained() {
	for _, pkg := range p.pkgs {
		p.pkg = pkg
		for id, inst := range pkg.Info.Instances {
			params := typeParams(pkg.Info.Uses[id])
			for i := range params.Len() {
				if i >= inst.TypeArgs.Len() {
					break
				}
				p.visiting = id.Pos()
				p.uniteMethods(inst.TypeArgs.At(i), params.At(i).Constraint())
				if namesTimers(params.At(i).Constraint()) {
					p.blockArgument(id, inst.TypeArgs.At(i))
				}
			}
		}
	}
}

// namesTimers reports whether a constraint, or one that it embeds, lists a type that is
// made of timers.
func namesTimers(t types.Type) bool {
	switch u := types.Unalias(t).(type) {
	case *types.Union:
		for term := range u.Terms() {
			if namesTimers(term.Type()) {
				return true
			}
		}
		return false
	case *types.Named:
		if timerType(u) != "" {
			return true
		}
	}
	if iface, ok := t.Underlying().(*types.Interface); ok {
		for e := range iface.EmbeddedTypes() {
			if namesTimers(e) {
				return true
			}
		}
		return false
	}
	return mentions(t) || mentions(t.Underlying())
}

// blockArgument blocks the timers that a type argument is made of.
func (p *program) blockArgument(id *ast.Ident, arg types.Type) {
	reason := "a constraint of " + id.Name + " lists its type"
	walkType(arg, func(t types.Type) {
		named, ok := t.(*types.Named)
		if !ok || timerType(named) != "" {
			return
		}
		p.definedNode(named).block(id.Pos(), reason)
		if s, ok := named.Origin().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if mentions(f.Type()) && p.paths[f.Pkg().Path()] {
					p.object(f).block(id.Pos(), reason)
				}
			}
		}
	})
}

// visitInstantiation blocks the timers in type arguments whose constraint lists types
// made of timers.
func (p *program) visitInstantiation(x ast.Expr, args []ast.Expr) {
	id := named(x)
	if id == nil {
		return
	}
	params := typeParams(p.pkg.Info.Uses[id])
	f := p.genericFunc(x)
	for i, arg := range args {
		if f != nil && mentions(p.typeOf(arg)) {
			// The instantiated function has these types whether it is called or used as
			// a value.
			n := p.expression(ast.Unparen(x))
			p.claim(arg, n)
			if mentions(f.Origin().Type()) {
				unite(n, p.object(f))
			}
		}
		if i < params.Len() {
			p.addInstances(arg)
		}
		if i >= params.Len() || !namesTimers(params.At(i).Constraint()) {
			continue
		}
		ast.Inspect(arg, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && timerName(p.pkg.Info.Uses[sel.Sel]) != "" {
				p.expression(sel).block(id.Pos(), "a constraint of "+id.Name+" lists its type")
			}
			return true
		})
	}
}

// addInstances notes the timers in a type argument.
func (p *program) addInstances(arg ast.Expr) {
	ast.Inspect(arg, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if timerName(p.pkg.Info.Uses[n.Sel]) != "" {
				p.instances = append(p.instances, p.expression(n))
			}
		case *ast.Ident:
			if obj, ok := p.pkg.Info.Uses[n].(*types.TypeName); ok && obj.IsAlias() && mentions(obj.Type()) {
				p.instances = append(p.instances, p.object(obj))
			}
		}
		return true
	})
}

// typeParams returns the type parameters of a generic type or function.
func typeParams(obj types.Object) *types.TypeParamList {
	switch obj := obj.(type) {
	case *types.TypeName:
		if named, ok := types.Unalias(obj.Type()).(*types.Named); ok {
			return named.Origin().TypeParams()
		}
	case *types.Func:
		return obj.Origin().Signature().TypeParams()
	}
	return nil
}

// visitTypeParams unites the methods that constraints require with the types in those
// methods' signatures.
func (p *program) visitTypeParams(list *ast.FieldList) {
	if list == nil {
		return
	}
	ast.Inspect(list, func(n ast.Node) bool {
		iface, ok := n.(*ast.InterfaceType)
		if !ok {
			return true
		}
		for _, field := range iface.Methods.List {
			for _, id := range field.Names {
				if obj := p.pkg.Info.Defs[id]; obj != nil && mentions(obj.Type()) {
					p.claim(field.Type, p.object(obj))
				}
			}
		}
		return true
	})
}
