package migrate

import (
	"go/ast"
	"go/types"
)

// nodeOf returns the node that stands for the timers in an expression's value. It returns
// nil if the type contains no timers.
func (p *program) nodeOf(e ast.Expr) *node {
	e = ast.Unparen(e)
	t := p.typeOf(e)
	if t == nil {
		return nil
	}
	if !hasTimer(t) {
		return p.nodeOfNamed(t)
	}
	switch e := e.(type) {
	case *ast.Ident:
		return p.nodeOfIdent(e, e)
	case *ast.SelectorExpr:
		return p.nodeOfSelector(e)
	case *ast.CallExpr:
		return p.nodeOfCall(e)
	case *ast.IndexExpr:
		if p.genericFunc(e.X) != nil {
			return p.nodeOfExpr(ast.Unparen(e.X)) // see visitInstantiation
		}
		return p.nodeOf(e.X)
	case *ast.IndexListExpr:
		if p.genericFunc(e.X) != nil {
			return p.nodeOfExpr(ast.Unparen(e.X))
		}
		return p.nodeOf(e.X)
	case *ast.SliceExpr:
		return p.nodeOf(e.X)
	case *ast.StarExpr:
		return p.nodeOf(e.X)
	case *ast.UnaryExpr:
		return p.nodeOf(e.X)
	case *ast.CompositeLit:
		if n := p.elidedLiterals[e]; n != nil {
			return n
		}
	}
	return p.nodeOfExpr(e)
}

func (p *program) typeOf(e ast.Expr) types.Type {
	if id, ok := e.(*ast.Ident); ok && id.Name == "_" {
		return nil
	}
	return p.pkg.Info.TypeOf(e)
}

// genericFunc returns the function that x denotes, or nil. In f[int], x is f.
func (p *program) genericFunc(x ast.Expr) *types.Func {
	f, _ := p.pkg.Info.Uses[lastIdent(x)].(*types.Func)
	return f
}

// lastIdent returns x if it is an identifier, and b if x is a.b. Else it returns nil.
func lastIdent(x ast.Expr) *ast.Ident {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return x
	case *ast.SelectorExpr:
		return x.Sel
	}
	return nil
}

// nodeOfIdent returns the node of the object that id denotes. e is id, or pkg.id.
func (p *program) nodeOfIdent(id *ast.Ident, e ast.Expr) *node {
	obj := p.pkg.Info.ObjectOf(id)
	if obj == nil {
		return p.nodeOfExpr(e)
	}
	if obj.Pkg() != nil && obj.Pkg().Path() == "time" {
		return p.nodeOfExpr(e) // a constructor
	}
	if _, generic := p.pkg.Info.Instances[id]; generic && !hasTimer(originOf(obj).Type()) {
		// Each use of a generic function has its own type arguments.
		return p.nodeOfExpr(e)
	}
	if _, ok := obj.(*types.Nil); ok {
		return nil
	}
	return p.nodeOfObject(obj)
}

func (p *program) nodeOfSelector(e *ast.SelectorExpr) *node {
	sel := p.pkg.Info.Selections[e]
	if sel == nil { // qualified by a package
		return p.nodeOfIdent(e.Sel, e)
	}
	if sel.Kind() == types.MethodExpr {
		n := p.nodeOfExpr(e)
		p.uniteTypeExpr(e.X, n)
		if hasTimer(originOf(sel.Obj()).Type()) {
			unite(n, p.nodeOfObject(sel.Obj()))
		}
		return n
	}
	if hasTimer(originOf(sel.Obj()).Type()) {
		return p.nodeOfObject(sel.Obj())
	}
	// The timers are type arguments of the operand, or of an embedded field between the
	// operand and the selected member.
	if n := p.nodeOfEmbedding(sel); n != nil {
		return n
	}
	return p.nodeOf(e.X)
}

// nodeOfEmbedding returns the node of the embedded field through which sel reaches a
// member, or nil. If there are several fields, it is the innermost whose type contains
// timers.
func (p *program) nodeOfEmbedding(sel *types.Selection) *node {
	var n *node
	t := sel.Recv()
	for _, i := range sel.Index()[:len(sel.Index())-1] {
		s, ok := deref(t.Underlying()).Underlying().(*types.Struct)
		if !ok {
			break
		}
		f := s.Field(i)
		if hasTimer(originOf(f).Type()) {
			n = p.nodeOfObject(f)
		}
		t = f.Type()
	}
	return n
}

func (p *program) nodeOfCall(e *ast.CallExpr) *node {
	info := p.pkg.Info
	if info.Types[e.Fun].IsType() {
		return p.nodeOfExpr(e)
	}
	if builtin := builtinName(info, e); builtin != "" {
		switch builtin {
		case "append", "min", "max":
			return p.nodeOf(e.Args[0])
		}
		return p.nodeOfExpr(e)
	}
	if n := p.nodeOf(e.Fun); n != nil {
		return n
	}
	return p.nodeOfExpr(e)
}

func builtinName(info *types.Info, e *ast.CallExpr) string {
	if id, ok := ast.Unparen(e.Fun).(*ast.Ident); ok {
		if b, ok := info.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}

// uniteTypeExpr records that the timer types in the type expression te must be rewritten
// together with n.
func (p *program) uniteTypeExpr(te ast.Expr, n *node) {
	if te == nil {
		return
	}
	info := p.pkg.Info
	pointees := make(map[ast.Expr]bool) // operands of * and type arguments
	ast.Inspect(te, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.StarExpr:
			pointees[ast.Unparen(x.X)] = true
		case *ast.IndexExpr:
			pointees[x.Index] = true
		case *ast.IndexListExpr:
			for _, i := range x.Indices {
				pointees[i] = true
			}
		case *ast.Field:
			idents := x.Names
			if id := embeddedName(x.Type); len(idents) == 0 && id != nil {
				idents = []*ast.Ident{id} // embedded, or a parameter without a name
			}
			for _, id := range idents {
				if obj := info.Defs[id]; obj != nil && hasTimer(obj.Type()) {
					unite(n, p.nodeOfObject(obj))
				}
			}
		case *ast.SelectorExpr:
			p.uniteTypeName(x.Sel, x, n, pointees[x])
			return false
		case *ast.Ident:
			p.uniteTypeName(x, x, n, pointees[x])
		}
		return true
	})
}

// uniteTypeName does what uniteTypeExpr does, for the single type name e, which is id or
// pkg.id. isPointee is true for a name after *, and for a type argument.
func (p *program) uniteTypeName(id *ast.Ident, e ast.Expr, n *node, isPointee bool) {
	obj, ok := p.pkg.Info.Uses[id].(*types.TypeName)
	if !ok {
		return
	}
	typeName := timerObjectName(obj)
	if typeName == "" {
		switch {
		case !obj.IsAlias():
			unite(n, p.nodeOfNamed(obj.Type())) // a type that is defined by this one
		case hasTimer(obj.Type()):
			unite(n, p.nodeOfObject(obj))
		}
		return
	}
	m := p.nodeOfExpr(e)
	p.unitedTypeExprs[p.keyAt(e.Pos(), 'e')] = true
	unite(n, m)
	if !isPointee {
		n.addBlocker(e.Pos(), "a time."+typeName+" by value: a timer."+typeName+" must not be copied")
	}
}

// uniteParamTypes records that the timers in a function's parameters or results must be
// rewritten together with n, the function's node.
func (p *program) uniteParamTypes(list *ast.FieldList, n *node) {
	if list == nil {
		return
	}
	for _, field := range list.List {
		for _, id := range field.Names {
			if obj := p.pkg.Info.Defs[id]; obj != nil && hasTimer(obj.Type()) {
				unite(n, p.nodeOfObject(obj))
			}
		}
		if hasTimer(p.pkg.Info.TypeOf(field.Type)) {
			p.uniteTypeExpr(field.Type, n)
		}
	}
}

// blockUnfollowedTypes prevents the rewrite of timer types that no call of uniteTypeExpr
// has seen. The analysis does not follow the code that uses them.
func (p *program) blockUnfollowedTypes() {
	for k, m := range p.typeUses {
		if !p.unitedTypeExprs[k] {
			p.nodes[k].addBlocker(m.pkgIdent.Pos(), "it is used in a way that this tool does not follow")
		}
	}
}
