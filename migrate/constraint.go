package migrate

import (
	"go/ast"
	"go/types"
)

// blockConstrainedTypeArgs prevents the rewrite of a type argument if its constraint
// lists timer types: constraints are not rewritten. If a constraint requires methods,
// blockConstrainedTypeArgs calls uniteMethods.
func (p *program) blockConstrainedTypeArgs() {
	for _, pkg := range p.pkgs {
		p.pkg = pkg
		for id, inst := range pkg.Info.Instances {
			params := typeParamsOf(pkg.Info.Uses[id])
			for i := range params.Len() {
				if i >= inst.TypeArgs.Len() {
					break
				}
				p.currentPos = id.Pos()
				p.uniteMethods(inst.TypeArgs.At(i), params.At(i).Constraint())
				if listsTimers(params.At(i).Constraint()) {
					p.blockTypeArg(id, inst.TypeArgs.At(i))
				}
			}
		}
	}
}

// listsTimers reports whether a constraint lists a type that contains timers, directly or
// through an embedded constraint.
func listsTimers(t types.Type) bool {
	switch u := types.Unalias(t).(type) {
	case *types.Union:
		for term := range u.Terms() {
			if listsTimers(term.Type()) {
				return true
			}
		}
		return false
	case *types.Named:
		if timerTypeName(u) != "" {
			return true
		}
	}
	if iface, ok := t.Underlying().(*types.Interface); ok {
		for e := range iface.EmbeddedTypes() {
			if listsTimers(e) {
				return true
			}
		}
		return false
	}
	return hasTimer(t) || hasTimer(t.Underlying())
}

// blockTypeArg prevents the rewrite of the timers that a type argument contains.
func (p *program) blockTypeArg(id *ast.Ident, arg types.Type) {
	reason := "a constraint of " + id.Name + " lists its type"
	walkType(arg, func(t types.Type) {
		named, ok := t.(*types.Named)
		if !ok || timerTypeName(named) != "" {
			return
		}
		p.nodeOfNamed(named).addBlocker(id.Pos(), reason)
		if s, ok := named.Origin().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if hasTimer(f.Type()) && p.pkgPaths[f.Pkg().Path()] {
					p.nodeOfObject(f).addBlocker(id.Pos(), reason)
				}
			}
		}
	})
}

// visitInstantiation handles a generic type or function x with written type arguments, such
// as f[*time.Timer].
func (p *program) visitInstantiation(x ast.Expr, args []ast.Expr) {
	id := lastIdent(x)
	if id == nil {
		return
	}
	params := typeParamsOf(p.pkg.Info.Uses[id])
	f := p.genericFunc(x)
	for i, arg := range args {
		if f != nil && hasTimer(p.typeOf(arg)) {
			// The type arguments count even if the function is not called.
			n := p.nodeOfExpr(ast.Unparen(x))
			p.uniteTypeExpr(arg, n)
			if hasTimer(f.Origin().Type()) {
				unite(n, p.nodeOfObject(f))
			}
		}
		if i < params.Len() {
			p.addTypeArg(arg)
		}
		if i >= params.Len() || !listsTimers(params.At(i).Constraint()) {
			continue
		}
		ast.Inspect(arg, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && timerObjectName(p.pkg.Info.Uses[sel.Sel]) != "" {
				p.nodeOfExpr(sel).addBlocker(id.Pos(), "a constraint of "+id.Name+" lists its type")
			}
			return true
		})
	}
}

// addTypeArg records the timers in a type argument.
func (p *program) addTypeArg(arg ast.Expr) {
	ast.Inspect(arg, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if timerObjectName(p.pkg.Info.Uses[n.Sel]) != "" {
				p.typeArgNodes = append(p.typeArgNodes, p.nodeOfExpr(n))
			}
		case *ast.Ident:
			if obj, ok := p.pkg.Info.Uses[n].(*types.TypeName); ok && obj.IsAlias() && hasTimer(obj.Type()) {
				p.typeArgNodes = append(p.typeArgNodes, p.nodeOfObject(obj))
			}
		}
		return true
	})
}

// typeParamsOf returns the type parameters of a generic type or function.
func typeParamsOf(obj types.Object) *types.TypeParamList {
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

// visitTypeParams handles the methods that constraints require: each must be rewritten
// together with the timer types in its signature.
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
				if obj := p.pkg.Info.Defs[id]; obj != nil && hasTimer(obj.Type()) {
					p.uniteTypeExpr(field.Type, p.nodeOfObject(obj))
				}
			}
		}
		return true
	})
}
