package migrate

import (
	"go/ast"
	"go/types"
)

// blockConstrained prevents the rewrite of a type argument if its constraint lists timer
// types: constraints are not rewritten. If a constraint requires methods, blockConstrained
// calls uniteMethods.
func (p *program) blockConstrained() {
	for _, pkg := range p.pkgs {
		p.pkg = pkg
		for id, inst := range pkg.Info.Instances {
			params := typeParams(pkg.Info.Uses[id])
			for i := range params.Len() {
				if i >= inst.TypeArgs.Len() {
					break
				}
				p.visitingPos = id.Pos()
				p.uniteMethods(inst.TypeArgs.At(i), params.At(i).Constraint())
				if listsTimers(params.At(i).Constraint()) {
					p.blockArgument(id, inst.TypeArgs.At(i))
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
		if timerType(u) != "" {
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

// blockArgument prevents the rewrite of the timers that a type argument contains.
func (p *program) blockArgument(id *ast.Ident, arg types.Type) {
	reason := "a constraint of " + id.Name + " lists its type"
	walkType(arg, func(t types.Type) {
		named, ok := t.(*types.Named)
		if !ok || timerType(named) != "" {
			return
		}
		p.nodeOfNamed(named).block(id.Pos(), reason)
		if s, ok := named.Origin().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if hasTimer(f.Type()) && p.paths[f.Pkg().Path()] {
					p.nodeOfObject(f).block(id.Pos(), reason)
				}
			}
		}
	})
}

// visitInstantiation handles a generic type or function x with written type arguments, such
// as f[*time.Timer].
func (p *program) visitInstantiation(x ast.Expr, args []ast.Expr) {
	id := identOf(x)
	if id == nil {
		return
	}
	params := typeParams(p.pkg.Info.Uses[id])
	f := p.genericFunc(x)
	for i, arg := range args {
		if f != nil && hasTimer(p.typeOf(arg)) {
			// The type arguments count even if the function is not called.
			n := p.nodeOfExpr(ast.Unparen(x))
			p.claim(arg, n)
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
			if sel, ok := n.(*ast.SelectorExpr); ok && timerName(p.pkg.Info.Uses[sel.Sel]) != "" {
				p.nodeOfExpr(sel).block(id.Pos(), "a constraint of "+id.Name+" lists its type")
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
			if timerName(p.pkg.Info.Uses[n.Sel]) != "" {
				p.typeArgs = append(p.typeArgs, p.nodeOfExpr(n))
			}
		case *ast.Ident:
			if obj, ok := p.pkg.Info.Uses[n].(*types.TypeName); ok && obj.IsAlias() && hasTimer(obj.Type()) {
				p.typeArgs = append(p.typeArgs, p.nodeOfObject(obj))
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
					p.claim(field.Type, p.nodeOfObject(obj))
				}
			}
		}
		return true
	})
}
