package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
)

// visitFile finds a file's call sites, and nodes that must be rewritten together.
func (p *program) visitFile(f *ast.File) {
	ast.PreorderStack(f, nil, func(n ast.Node, stack []ast.Node) bool {
		p.currentPos = n.Pos()
		switch n := n.(type) {
		case *ast.FuncDecl:
			p.visitTypeParams(n.Type.TypeParams)
			p.visitFuncDecl(n)
		case *ast.FuncLit:
			if hasTimer(p.typeOf(n)) {
				funcNode := p.nodeOfExpr(n)
				p.uniteParamTypes(n.Type.Params, funcNode)
				p.uniteParamTypes(n.Type.Results, funcNode)
			}
		case *ast.TypeSpec:
			p.visitTypeParams(n.TypeParams)
			p.visitTypeSpec(n, stack)
		case *ast.StructType:
			if spec, ok := stack[len(stack)-1].(*ast.TypeSpec); !ok || spec.Assign.IsValid() {
				p.blockHidingTimers(p.typeOf(n), n.Pos())
			} // else it has methods: see visitTypeSpec
		case *ast.ValueSpec:
			p.visitValueSpec(n, stack)
		case *ast.AssignStmt:
			p.visitAssign(n.Lhs, n.Rhs)
		case *ast.ReturnStmt:
			p.visitReturn(n, stack)
			p.addPoolNew(n, stack)
		case *ast.CallExpr:
			p.visitCall(n)
			p.addPoolPut(n)
		case *ast.CompositeLit:
			p.visitLiteral(n, stack)
		case *ast.SendStmt:
			if ch, ok := p.typeOf(n.Chan).Underlying().(*types.Chan); ok {
				p.uniteAssignment(p.nodeOfPart(n.Chan, ch.Elem()), ch.Elem(), n.Value)
			}
		case *ast.RangeStmt:
			p.visitRange(n)
		case *ast.IndexListExpr:
			p.visitInstantiation(n.X, n.Indices)
		case *ast.IndexExpr:
			p.visitInstantiation(n.X, []ast.Expr{n.Index})
			if t := p.typeOf(n.X); t != nil {
				if m, ok := t.Underlying().(*types.Map); ok {
					p.uniteAssignment(p.nodeOfPart(n.X, m.Key()), m.Key(), n.Index)
				}
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				p.uniteOperands(n.X, n.Y)
			}
		case *ast.SwitchStmt:
			p.visitSwitch(n)
		case *ast.TypeSwitchStmt:
			p.visitTypeSwitch(n)
		case *ast.TypeAssertExpr:
			if n.Type != nil {
				p.visitAssertion(n.Type, p.nodeOfExpr(n))
			}
		case *ast.StarExpr:
			if tv := p.pkg.Info.Types[n]; tv.IsValue() {
				if typeName := timerTypeName(tv.Type); typeName != "" {
					p.nodeOf(n.X).addBlocker(n.Pos(), "a time."+typeName+" is copied: a timer."+typeName+" must not be copied")
				}
			}
		case *ast.SelectorExpr:
			p.visitSelector(n, stack)
		case *ast.Ident:
			p.visitIdent(n, stack)
		}
		return true
	})
}

// visitRange handles a range loop. Its variables must be rewritten together with the value
// that the loop ranges over.
func (p *program) visitRange(n *ast.RangeStmt) {
	rangedNode := p.nodeOf(n.X)
	for i, v := range []ast.Expr{n.Key, n.Value} {
		if v == nil {
			continue
		}
		t := p.typeOf(v)
		if t == nil {
			continue
		}
		varNode := p.nodeOf(v)
		unite(varNode, rangedNode)
		if from := rangeVarType(p.typeOf(n.X), i); from != nil && n.Tok == token.ASSIGN {
			if isInterface(t) {
				p.addToInterface(rangedNode, from, t)
				continue
			}
			p.uniteFields(varNode, t, rangedNode, from)
		}
	}
}

// rangeVarType returns the type of the key (i = 0) or value (i = 1) in a loop that ranges
// over a value of type x. It returns nil if the loop has no such variable. It may also
// return nil for a number, such as an index.
func rangeVarType(x types.Type, i int) types.Type {
	if x == nil {
		return nil
	}
	var pair [2]types.Type
	switch u := x.Underlying().(type) {
	case *types.Slice:
		pair[1] = u.Elem()
	case *types.Array:
		pair[1] = u.Elem()
	case *types.Pointer:
		if a, ok := u.Elem().Underlying().(*types.Array); ok {
			pair[1] = a.Elem()
		}
	case *types.Map:
		pair = [2]types.Type{u.Key(), u.Elem()}
	case *types.Chan:
		pair[0] = u.Elem()
	case *types.Signature: // an iterator
		if u.Params().Len() != 1 {
			return nil
		}
		yield, ok := u.Params().At(0).Type().Underlying().(*types.Signature)
		if !ok || i >= yield.Params().Len() {
			return nil
		}
		return yield.Params().At(i).Type()
	}
	return pair[i]
}

func (p *program) visitFuncDecl(n *ast.FuncDecl) {
	obj, ok := p.pkg.Info.Defs[n.Name].(*types.Func)
	if !ok || !hasTimer(obj.Type()) {
		return
	}
	funcNode := p.nodeOfObject(obj)
	p.uniteParamTypes(n.Type.Params, funcNode)
	p.uniteParamTypes(n.Type.Results, funcNode)
	if n.Body == nil {
		funcNode.addBlocker(n.Pos(), "the function "+n.Name.Name+" is written in assembly")
	}
	if !n.Name.IsExported() {
		return
	}
	if recv := obj.Signature().Recv(); recv != nil {
		t := recv.Type()
		if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
			t = ptr.Elem()
		}
		if named, ok := types.Unalias(t).(*types.Named); ok {
			switch {
			case p.apiTypeNames[p.keyAt(named.Obj().Pos(), 'o')]:
				p.blockAPIType(funcNode, n.Name)
				return
			case !named.Obj().Exported():
				return
			}
		}
	}
	p.blockExportedType(funcNode, n.Name)
}

// blockExportedType prevents the rewrite of an exported name's type if packages that are
// not analyzed may use the name.
func (p *program) blockExportedType(n *node, id *ast.Ident) {
	if !id.IsExported() || p.pkg.Types.Name() == "main" || isInternalPath(p.pkg.Path) && !p.opts.unseenImporters {
		return
	}
	p.blockAPIType(n, id)
}

// blockAPIType prevents the rewrite of a type that other modules can reach.
func (p *program) blockAPIType(n *node, id *ast.Ident) {
	if p.opts.Exported || p.file.isTest {
		return
	}
	n.addBlocker(id.Pos(), id.Name+" is part of the API of package "+p.pkg.Types.Name())
}

func (p *program) visitTypeSpec(n *ast.TypeSpec, stack []ast.Node) {
	obj := p.pkg.Info.Defs[n.Name]
	if obj == nil {
		return
	}
	if !n.Assign.IsValid() {
		p.blockHidingTimers(obj.Type(), n.Name.Pos())
	}
	isPackageLevel := len(stack) == 2 // file, declaration
	blockIfExported := func(m *node, id *ast.Ident, embedded bool) {
		switch {
		case !isPackageLevel:
		case p.isAPIType(n.Name) && (id == n.Name || embedded || id.IsExported()):
			p.blockAPIType(m, id)
		case n.Name.IsExported():
			p.blockExportedType(m, id)
		}
	}
	visitMembers := func(list *ast.FieldList) {
		for _, field := range list.List {
			idents := field.Names
			if len(idents) == 0 { // embedded
				if id := embeddedName(field.Type); id != nil {
					idents = []*ast.Ident{id}
				}
			}
			for _, id := range idents {
				if member := p.declaredMember(obj, id); member != nil && hasTimer(member.Type()) {
					m := p.nodeOfObject(member)
					p.uniteTypeExpr(field.Type, m)
					blockIfExported(m, id, len(field.Names) == 0)
				}
			}
		}
	}
	switch t := n.Type.(type) {
	case *ast.StructType:
		if !n.Assign.IsValid() {
			visitMembers(t.Fields)
			return
		}
	case *ast.InterfaceType:
		if !n.Assign.IsValid() {
			visitMembers(t.Methods)
			return
		}
	}
	underlying := obj.Type().Underlying()
	if n.Assign.IsValid() {
		underlying = p.typeOf(n.Type)
	}
	if hasTimer(underlying) {
		m := p.nodeOfObject(obj)
		p.uniteTypeExpr(n.Type, m)
		blockIfExported(m, n.Name, false)
	}
}

// embeddedName returns the name of a field that embeds the type e: Timer for *time.Timer.
func embeddedName(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.StarExpr:
		return embeddedName(e.X)
	case *ast.IndexExpr:
		return embeddedName(e.X)
	case *ast.IndexListExpr:
		return embeddedName(e.X)
	}
	return nil
}

// declaredMember returns the field or method that id declares in a type.
func (p *program) declaredMember(typeName types.Object, id *ast.Ident) types.Object {
	if obj := p.pkg.Info.Defs[id]; obj != nil {
		return obj
	}
	// Info.Defs does not record embedded fields.
	if s, ok := typeName.Type().Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Embedded() && f.Name() == id.Name {
				return f
			}
		}
	}
	return nil
}

func (p *program) visitValueSpec(n *ast.ValueSpec, stack []ast.Node) {
	lhs := make([]ast.Expr, len(n.Names))
	for i, id := range n.Names {
		lhs[i] = id
		obj := p.pkg.Info.Defs[id]
		if obj == nil || !hasTimer(obj.Type()) {
			continue
		}
		m := p.nodeOfObject(obj)
		p.uniteTypeExpr(n.Type, m)
		if len(stack) == 2 {
			p.blockExportedType(m, id)
		}
	}
	if n.Type != nil && len(lhs) == len(n.Values) {
		for i, v := range n.Values { // also for the blank name
			p.uniteAssignment(p.nodeOf(lhs[i]), p.typeOf(n.Type), v)
		}
		return
	}
	if len(n.Values) > 0 {
		p.visitAssign(lhs, n.Values)
	}
}

func (p *program) visitAssign(lhs, rhs []ast.Expr) {
	if len(lhs) == len(rhs) {
		for i := range lhs {
			if t := p.typeOf(lhs[i]); t != nil {
				p.uniteAssignment(p.nodeOf(lhs[i]), t, rhs[i])
			}
		}
		return
	}
	for i, l := range lhs {
		if t := p.typeOf(l); t != nil {
			p.uniteAssignedResult(p.nodeOf(l), t, rhs[0], i)
		}
	}
}

func (p *program) visitReturn(n *ast.ReturnStmt, stack []ast.Node) {
	var sig *types.Signature
	var funcNode func() *node
search:
	for i := len(stack) - 1; i >= 0; i-- {
		switch f := stack[i].(type) {
		case *ast.FuncLit:
			sig, _ = p.typeOf(f).(*types.Signature)
			funcNode = func() *node { return p.nodeOfExpr(f) }
			break search
		case *ast.FuncDecl:
			if obj, ok := p.pkg.Info.Defs[f.Name].(*types.Func); ok {
				sig = obj.Signature()
				funcNode = func() *node { return p.nodeOfObject(obj) }
			}
			break search
		}
	}
	if sig == nil || len(n.Results) == 0 {
		return
	}
	for i := range sig.Results().Len() {
		t := sig.Results().At(i).Type()
		var dst *node
		if hasTimer(t) {
			dst = funcNode()
		} else {
			dst = p.nodeOfNamed(t)
		}
		if len(n.Results) == sig.Results().Len() {
			p.uniteAssignment(dst, t, n.Results[i])
		} else {
			p.uniteAssignedResult(dst, t, n.Results[0], i)
		}
	}
}

func (p *program) visitSwitch(n *ast.SwitchStmt) {
	if n.Tag == nil {
		return
	}
	for _, s := range n.Body.List {
		for _, e := range s.(*ast.CaseClause).List {
			p.uniteOperands(n.Tag, e)
		}
	}
}

func (p *program) visitTypeSwitch(n *ast.TypeSwitchStmt) {
	p.blockDuplicateCases(n)
	for _, s := range n.Body.List {
		clause := s.(*ast.CaseClause)
		for _, e := range clause.List {
			m := p.nodeOfExpr(e)
			p.visitAssertion(e, m)
			if obj := p.pkg.Info.Implicits[clause]; obj != nil && hasTimer(obj.Type()) {
				unite(m, p.nodeOfObject(obj))
			}
		}
	}
}

// blockDuplicateCases prevents rewrites that could make two cases of a type switch equal.
// Such a type switch does not compile.
func (p *program) blockDuplicateCases(n *ast.TypeSwitchStmt) {
	var timers, others []ast.Expr
	for _, s := range n.Body.List {
		for _, e := range s.(*ast.CaseClause).List {
			switch t := p.typeOf(e); {
			case t == nil:
			case hasTimer(t):
				timers = append(timers, e)
			default:
				others = append(others, e)
			}
		}
	}
	for _, e := range timers {
		for _, o := range others {
			if mayBecomeIdentical(p.typeOf(e), p.typeOf(o)) {
				p.nodeOfExpr(e).addBlocker(o.Pos(), reasonBothTypes)
			}
		}
	}
}

// mayBecomeIdentical reports whether t may be identical to u after a rewrite of t. It is
// also true for any two structs, interfaces or functions.
func mayBecomeIdentical(t, u types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		u, ok := types.Unalias(u).(*types.Named)
		if !ok || t.TypeArgs().Len() != u.TypeArgs().Len() {
			return false
		}
		for i := range t.TypeArgs().Len() {
			if !mayBecomeIdentical(t.TypeArgs().At(i), u.TypeArgs().At(i)) {
				return false
			}
		}
		if timerTypeName(t) != "" {
			pkg := u.Obj().Pkg()
			return pkg != nil && pkg.Path() == TimerPath && u.Obj().Name() == t.Obj().Name() || types.Identical(t, u)
		}
		return t.Origin().Obj() == u.Origin().Obj()
	case *types.Pointer:
		u, ok := types.Unalias(u).(*types.Pointer)
		return ok && mayBecomeIdentical(t.Elem(), u.Elem())
	case *types.Slice:
		u, ok := types.Unalias(u).(*types.Slice)
		return ok && mayBecomeIdentical(t.Elem(), u.Elem())
	case *types.Array:
		u, ok := types.Unalias(u).(*types.Array)
		return ok && t.Len() == u.Len() && mayBecomeIdentical(t.Elem(), u.Elem())
	case *types.Chan:
		u, ok := types.Unalias(u).(*types.Chan)
		return ok && t.Dir() == u.Dir() && mayBecomeIdentical(t.Elem(), u.Elem())
	case *types.Map:
		u, ok := types.Unalias(u).(*types.Map)
		return ok && mayBecomeIdentical(t.Key(), u.Key()) && mayBecomeIdentical(t.Elem(), u.Elem())
	case *types.Signature:
		_, ok := types.Unalias(u).(*types.Signature)
		return ok
	case *types.Struct:
		_, ok := types.Unalias(u).(*types.Struct)
		return ok
	case *types.Interface:
		_, ok := types.Unalias(u).(*types.Interface)
		return ok
	}
	return types.Identical(t, u)
}

// blockHidingTimers prevents the rewrite of embedded timers if the struct outer already
// has a method Deadline. The method Deadline of timer.Timer would hide it.
func (p *program) blockHidingTimers(outer types.Type, pos token.Pos) {
	if outer == nil {
		return
	}
	found, index, _ := types.LookupFieldOrMethod(outer, true, p.pkg.Types, "Deadline")
	if found == nil {
		return
	}
	// A timer that is embedded more deeply than the other Deadline does not hide it.
	maxDepth := len(index) - 1
	var walk func(t types.Type, depth int)
	walk = func(t types.Type, depth int) {
		s, ok := t.Underlying().(*types.Struct)
		if !ok || depth > maxDepth {
			return
		}
		for f := range s.Fields() {
			switch t := deref(f.Type()); {
			case !f.Embedded():
			case timerTypeName(t) == "Timer":
				p.nodeOfObject(f).addBlocker(pos, "embedded beside another method Deadline, which the Deadline of timer.Timer would hide")
			default:
				walk(t, depth+1)
			}
		}
	}
	walk(outer, 1)
}
