package migrate

import (
	"go/ast"
	"go/types"
)

// visitConversions calls visitConversion for the values that a node assigns, passes,
// returns, sends or puts into a literal. stack are the nodes around n.
func (t *tagged) visitConversions(n ast.Node, stack []ast.Node) {
	convert := func(to types.Type, e ast.Expr) { t.visitConversion(to, t.info.TypeOf(e), e.Pos(), nil) }
	// convertAll handles several values, or the results of one call.
	convertAll := func(to []types.Type, values []ast.Expr, callee *types.Func) {
		if len(values) == 1 {
			if results, ok := t.info.TypeOf(values[0]).(*types.Tuple); ok {
				for i := range min(results.Len(), len(to)) {
					t.visitConversion(to[i], results.At(i).Type(), values[0].Pos(), callee)
				}
				return
			}
		}
		for i, e := range values[:min(len(values), len(to))] {
			t.visitConversion(to[i], t.info.TypeOf(e), e.Pos(), callee)
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		tv := t.info.Types[n.Fun]
		switch name := builtinName(t.info, n); {
		case tv.IsType() && len(n.Args) == 1:
			convert(tv.Type, n.Args[0])
		case name == "append" && !n.Ellipsis.IsValid():
			if slice, ok := t.info.TypeOf(n).Underlying().(*types.Slice); ok {
				for _, arg := range n.Args[1:] {
					convert(slice.Elem(), arg)
				}
			}
		case name == "" && tv.Type != nil:
			if sig, ok := tv.Type.Underlying().(*types.Signature); ok {
				convertAll(paramTypes(sig, n), n.Args, calledFunc(t.info, n))
			}
		}
	case *ast.AssignStmt:
		to := make([]types.Type, len(n.Lhs))
		for i, l := range n.Lhs {
			to[i] = t.info.TypeOf(l)
			if len(n.Lhs) == len(n.Rhs) {
				t.recordPoolResult(l, n.Rhs[i])
			}
		}
		convertAll(to, n.Rhs, nil)
	case *ast.ValueSpec:
		if n.Type != nil && len(n.Values) > 0 {
			to := make([]types.Type, len(n.Names))
			for i := range to {
				to[i] = t.info.TypeOf(n.Type)
			}
			convertAll(to, n.Values, nil)
		}
	case *ast.ReturnStmt:
		if sig, isPoolNew := t.enclosingFunc(stack); isPoolNew && len(n.Results) == 1 {
			t.addPooled(t.info.TypeOf(n.Results[0]))
		} else if sig != nil && len(n.Results) > 0 {
			var to []types.Type
			for v := range sig.Results().Variables() {
				to = append(to, v.Type())
			}
			convertAll(to, n.Results, nil)
		}
	case *ast.SendStmt:
		if ch, ok := t.info.TypeOf(n.Chan).Underlying().(*types.Chan); ok {
			convert(ch.Elem(), n.Value)
		}
	case *ast.IndexExpr:
		if m, ok := t.info.TypeOf(n.X).Underlying().(*types.Map); ok {
			convert(m.Key(), n.Index)
		}
	case *ast.CompositeLit:
		underlying := deref(t.info.TypeOf(n)).Underlying()
		for i, elt := range n.Elts {
			kv, keyed := elt.(*ast.KeyValueExpr)
			value := elt
			if keyed {
				value = kv.Value
			}
			switch u := underlying.(type) {
			case *types.Struct:
				if !keyed {
					convert(u.Field(i).Type(), value)
				} else if f := t.info.ObjectOf(kv.Key.(*ast.Ident)); f != nil {
					convert(f.Type(), value)
				}
			case *types.Map:
				convert(u.Key(), kv.Key)
				convert(u.Elem(), value)
			case interface{ Elem() types.Type }: // a slice or an array
				convert(u.Elem(), value)
			}
		}
	}
}

// paramTypes returns the parameter type for each argument of a call.
func paramTypes(sig *types.Signature, call *ast.CallExpr) (list []types.Type) {
	for v := range sig.Params().Variables() {
		list = append(list, v.Type())
	}
	if !sig.Variadic() || call.Ellipsis.IsValid() {
		return list
	}
	last := len(list) - 1
	slice, ok := list[last].Underlying().(*types.Slice)
	if !ok {
		return list
	}
	list[last] = slice.Elem()
	for range len(call.Args) {
		list = append(list, slice.Elem())
	}
	return list
}

// enclosingFunc returns the type of the innermost function on the stack, and whether the
// function is the field New of a sync.Pool's literal.
func (t *tagged) enclosingFunc(stack []ast.Node) (sig *types.Signature, isPoolNew bool) {
	for i := len(stack) - 1; i >= 0; i-- {
		switch f := stack[i].(type) {
		case *ast.FuncLit:
			sig, _ = t.info.TypeOf(f).(*types.Signature)
			if i > 1 {
				lit, ok := stack[i-2].(*ast.CompositeLit)
				isPoolNew = ok && isPool(t.info.TypeOf(lit))
			}
			return sig, isPoolNew
		case *ast.FuncDecl:
			if obj := t.info.Defs[f.Name]; obj != nil {
				sig, _ = obj.Type().(*types.Signature)
			}
			return sig, false
		}
	}
	return nil, false
}

// The analysis follows timers through the values of a sync.Pool, because many programs
// keep timers in pools. It takes all pools of a package for one.

func isPool(typ types.Type) bool { return types.TypeString(deref(typ), nil) == "sync.Pool" }

func (t *tagged) poolClass() *class {
	if t.pooled == nil {
		t.pooled = t.p.newClass()
	}
	return t.pooled.representative()
}

// addPooled records that a pool may hold values of a type.
func (t *tagged) addPooled(typ types.Type) {
	if typ != nil {
		for _, c := range t.classesOf(typ) {
			unite(t.poolClass(), c)
		}
	}
}

// recordPoolResult records the assignment of src to a variable v that may hold the result of
// a pool's Get.
func (t *tagged) recordPoolResult(v, src ast.Expr) {
	id, ok := v.(*ast.Ident)
	if !ok {
		return
	}
	obj := t.info.ObjectOf(id)
	if obj == nil || !isInterface(obj.Type()) || obj.Parent() == t.pkg.Scope() {
		return
	}
	isGet := t.isPoolGet(src)
	if before, ok := t.poolResults[obj]; ok && before != isGet {
		t.poolClass().addBlocker(t.originalPos(v.Pos()), obj.Name()+" may hold a value that is not from a sync.Pool")
	}
	t.poolResults[obj] = isGet
}

func (t *tagged) isPoolGet(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	f := calledFunc(t.info, call)
	return f != nil && f.FullName() == "(*sync.Pool).Get"
}

// isFromPool reports whether e is what a pool's Get returned.
func (t *tagged) isFromPool(e ast.Expr) bool {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok && t.poolResults[t.info.ObjectOf(id)] {
		return true
	}
	return t.isPoolGet(e)
}

// isInterface reports whether typ is an interface type. It is false for type parameters.
func isInterface(typ types.Type) bool {
	if _, ok := types.Unalias(typ).(*types.TypeParam); ok {
		return false
	}
	return types.IsInterface(typ)
}

func deref(typ types.Type) types.Type {
	if ptr, ok := types.Unalias(typ).(*types.Pointer); ok {
		return ptr.Elem()
	}
	return typ
}

// builtinName returns the name of the built-in function that e calls, or "".
func builtinName(info *types.Info, e *ast.CallExpr) string {
	if id, ok := ast.Unparen(e.Fun).(*ast.Ident); ok {
		if b, ok := info.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}

// calledFunc returns the function or method that a call names, or nil.
func calledFunc(info *types.Info, call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	var f *types.Func
	switch x := fun.(type) {
	case *ast.Ident:
		f, _ = info.Uses[x].(*types.Func)
	case *ast.SelectorExpr:
		f, _ = info.Uses[x.Sel].(*types.Func)
	}
	return f
}
