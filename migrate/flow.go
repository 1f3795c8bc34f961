package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// uniteAssignment handles an assignment: the value src and its destination must be
// rewritten together. dst is the destination's node, t its type.
func (p *program) uniteAssignment(dst *node, t types.Type, src ast.Expr) {
	srcType := p.typeOf(src)
	if srcType == nil {
		return
	}
	if isInterface(t) {
		p.addToInterface(p.nodeOf(src), srcType, t)
		return
	}
	n := p.nodeOf(src)
	if dst != nil {
		unite(dst, n)
	}
	p.uniteFields(dst, t, n, srcType)
}

// uniteFields records that the fields of the struct types t and u must be rewritten
// together. x and y are the nodes of their values, or nil.
func (p *program) uniteFields(x *node, t types.Type, y *node, u types.Type) {
	a, ok1 := t.Underlying().(*types.Struct)
	b, ok2 := u.Underlying().(*types.Struct)
	if !ok1 || !ok2 || a == b || a.NumFields() != b.NumFields() {
		return
	}
	for i := range a.NumFields() {
		unite(p.nodeOfField(a.Field(i), x), p.nodeOfField(b.Field(i), y))
	}
}

// nodeOfField returns the node of field f. whole is the node of the struct value.
func (p *program) nodeOfField(f *types.Var, whole *node) *node {
	switch {
	case f.Pkg() != nil && f.Pkg().Path() == "time":
		return nil // the field C, a channel of times
	case hasTimer(originOf(f).Type()):
		return p.nodeOfObject(f)
	case hasTimer(f.Type()):
		return whole
	}
	return p.nodeOfNamed(f.Type())
}

// uniteAssignedResult is uniteAssignment for result i of the call src.
func (p *program) uniteAssignedResult(dst *node, t types.Type, src ast.Expr, i int) {
	tuple, ok := p.typeOf(src).(*types.Tuple)
	if !ok || i >= tuple.Len() {
		return
	}
	resultType := tuple.At(i).Type()
	var n *node
	if hasTimer(resultType) {
		n = p.nodeOf(src)
	} else {
		n = p.nodeOfNamed(resultType)
	}
	if isInterface(t) {
		p.addToInterface(n, resultType, t)
		return
	}
	if dst != nil {
		unite(dst, n)
	}
	p.uniteFields(dst, t, n, resultType)
}

// uniteOperands records that the two operands of a comparison or a copy must be rewritten
// together.
func (p *program) uniteOperands(x, y ast.Expr) {
	tx, ty := p.typeOf(x), p.typeOf(y)
	if tx == nil || ty == nil {
		return
	}
	switch {
	case isInterface(tx) && !isInterface(ty):
		p.uniteAssignment(nil, tx, y)
		p.addFromInterface(p.nodeOf(y), ty)
	case isInterface(ty) && !isInterface(tx):
		p.uniteAssignment(nil, ty, x)
		p.addFromInterface(p.nodeOf(x), tx)
	default:
		nx, ny := p.nodeOf(x), p.nodeOf(y)
		unite(nx, ny)
		p.uniteFields(nx, tx, ny, ty)
	}
}

// isInterface reports whether t is an interface type. It is false for type parameters.
func isInterface(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return false
	}
	return types.IsInterface(t)
}

func hasMethod(t types.Type, name string) bool {
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	for m := range iface.Methods() {
		if m.Name() == name {
			return true
		}
	}
	return false
}

// nodeOfPart returns the node of a part of e, such as an element. t is the part's type.
func (p *program) nodeOfPart(e ast.Expr, t types.Type) *node {
	if hasTimer(t) {
		return p.nodeOf(e)
	}
	return p.nodeOfNamed(t)
}

func (p *program) visitCall(n *ast.CallExpr) {
	info := p.pkg.Info
	if tv := info.Types[n.Fun]; tv.IsType() {
		p.visitConversion(n, tv.Type)
		return
	}
	if name := builtinName(info, n); name != "" {
		p.visitBuiltin(n, name)
		return
	}
	t := p.typeOf(n.Fun)
	if t == nil {
		return
	}
	sig, ok := t.Underlying().(*types.Signature)
	if !ok {
		return
	}
	p.visitGenericCall(n)
	thirdPartyName := p.thirdPartyFuncName(n.Fun)
	argCount := len(n.Args)
	tuple, isTuple := (*types.Tuple)(nil), false
	if argCount == 1 && sig.Params().Len() > 1 {
		if tuple, isTuple = p.typeOf(n.Args[0]).(*types.Tuple); isTuple {
			argCount = tuple.Len()
		}
	}
	for i := range argCount {
		pt := paramType(sig, i, n.Ellipsis.IsValid())
		if pt == nil {
			continue
		}
		paramNode := p.nodeOfPart(n.Fun, pt)
		if isTuple {
			p.uniteAssignedResult(paramNode, pt, n.Args[0], i)
			continue
		}
		if p.isNewTimerArg(n, sig, i) {
			p.nodeOf(n.Args[i]).addBlocker(n.Args[i].Pos(), reasonNeverStopped)
			continue
		}
		if p.isSetFinalizer(n) {
			p.nodeOf(n.Args[i]).addBlocker(n.Args[i].Pos(), "runtime.SetFinalizer compares its type with the finalizer's")
			continue
		}
		p.uniteAssignment(paramNode, pt, n.Args[i])
		if thirdPartyName != "" && isInterface(pt) {
			if from := p.typeOf(n.Args[i]); from != nil && hasTimer(from) {
				p.nodeOf(n.Args[i]).addBlocker(n.Args[i].Pos(), "it is passed to "+thirdPartyName+" as an interface value")
			} else if from != nil {
				p.blockMethods(from, n.Args[i].Pos(), "it is passed to "+thirdPartyName+" as an interface value, and may be asserted to have this method")
			}
		}
	}
}

// isNewTimerArg reports whether argument i of a call is a new timer, as in
// fmt.Println(time.NewTimer(d)). Nothing can stop such a timer.
func (p *program) isNewTimerArg(n *ast.CallExpr, sig *types.Signature, i int) bool {
	if !sig.Variadic() || i < sig.Params().Len()-1 || n.Ellipsis.IsValid() {
		return false
	}
	if pt := paramType(sig, i, false); pt == nil || !isInterface(pt) || hasMethod(pt, "Stop") {
		return false
	}
	call, ok := ast.Unparen(n.Args[i]).(*ast.CallExpr)
	if !ok {
		return false
	}
	callee, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if path, name := constructorName(p.pkg.Info.Uses[callee.Sel]); path != "time" || name != "NewTimer" && name != "NewTicker" {
		return false
	}
	obj := p.pkg.Info.Uses[lastIdent(n.Fun)]
	return obj != nil && obj.Pkg() != nil && !p.pkgPaths[obj.Pkg().Path()]
}

// isSetFinalizer reports whether a call is runtime.SetFinalizer.
func (p *program) isSetFinalizer(n *ast.CallExpr) bool {
	sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	return ok && qualifiedName(p.pkg.Info, sel, "runtime") == "SetFinalizer"
}

// blockMethods prevents the rewrite of a type's exported methods that take or return
// timers.
func (p *program) blockMethods(t types.Type, pos token.Pos, reason string) {
	for m := range types.NewMethodSet(t).Methods() {
		if obj := m.Obj(); obj.Exported() && hasTimer(originOf(obj).Type()) {
			p.nodeOfObject(obj).addBlocker(pos, reason)
		}
	}
}

func paramType(sig *types.Signature, i int, spread bool) types.Type {
	lastIndex := sig.Params().Len() - 1
	if !sig.Variadic() || i < lastIndex {
		if i > lastIndex {
			return nil
		}
		return sig.Params().At(i).Type()
	}
	t := sig.Params().At(lastIndex).Type()
	if spread {
		return t
	}
	if s, ok := t.Underlying().(*types.Slice); ok {
		return s.Elem()
	}
	return nil // append([]byte, string...)
}

// thirdPartyFuncName returns the name of a called function if another module declares it,
// else "". The standard library and testify do not count.
func (p *program) thirdPartyFuncName(funcExpr ast.Expr) string {
	obj := p.pkg.Info.Uses[lastIdent(funcExpr)]
	if obj == nil || obj.Pkg() == nil || p.pkgPaths[obj.Pkg().Path()] {
		return ""
	}
	pkgPath := obj.Pkg().Path()
	if first, _, _ := strings.Cut(pkgPath, "/"); standardLibraryRoots[first] || strings.HasPrefix(pkgPath, "github.com/stretchr/testify/") {
		return ""
	}
	return obj.Pkg().Name() + "." + obj.Name()
}

// standardLibraryRoots has the first elements of the standard library's import paths. Not
// all paths without a dot are the standard library's.
var standardLibraryRoots = map[string]bool{
	"archive": true, "bufio": true, "bytes": true, "cmp": true, "compress": true, "container": true,
	"context": true, "crypto": true, "database": true, "debug": true, "embed": true, "encoding": true,
	"errors": true, "expvar": true, "flag": true, "fmt": true, "go": true, "hash": true, "html": true,
	"image": true, "index": true, "io": true, "iter": true, "log": true, "maps": true, "math": true,
	"mime": true, "net": true, "os": true, "path": true, "plugin": true, "reflect": true, "regexp": true,
	"runtime": true, "slices": true, "sort": true, "strconv": true, "strings": true, "structs": true,
	"sync": true, "syscall": true, "testing": true, "text": true, "time": true, "unicode": true,
	"unique": true, "unsafe": true, "weak": true,
}

// visitGenericCall handles a call of a generic function. Its type arguments, arguments and
// results that contain timers must be rewritten together.
func (p *program) visitGenericCall(call *ast.CallExpr) {
	funcExpr := ast.Unparen(call.Fun)
	var typeArgExprs []ast.Expr
	switch x := funcExpr.(type) {
	case *ast.IndexExpr:
		funcExpr, typeArgExprs = x.X, []ast.Expr{x.Index}
	case *ast.IndexListExpr:
		funcExpr, typeArgExprs = x.X, x.Indices
	}
	id := lastIdent(funcExpr)
	inst, ok := p.pkg.Info.Instances[id]
	if !ok {
		return
	}
	var n *node
	for arg := range inst.TypeArgs.Types() {
		if hasTimer(arg) {
			n = p.nodeOfExpr(ast.Unparen(funcExpr))
		}
	}
	if n == nil {
		return
	}
	p.typeArgNodes = append(p.typeArgNodes, n)
	for _, e := range typeArgExprs {
		p.uniteTypeExpr(e, n)
	}
	for _, e := range call.Args {
		if t := p.typeOf(e); t != nil && hasTimer(t) && !isInterface(t) {
			unite(n, p.nodeOf(e))
		}
	}
	f, ok := p.pkg.Info.Uses[id].(*types.Func)
	if !ok {
		return
	}
	if hasTimer(f.Origin().Type()) {
		unite(n, p.nodeOfObject(f))
	}
	for tp := range f.Origin().Signature().TypeParams().TypeParams() {
		n.representative().stopCalled = n.representative().stopCalled || hasMethod(tp.Constraint(), "Stop")
		if listsTimers(tp.Constraint()) {
			n.addBlocker(call.Pos(), "a constraint of "+f.Name()+" lists its type")
		}
	}
}

func (p *program) visitConversion(n *ast.CallExpr, t types.Type) {
	if len(n.Args) != 1 {
		return
	}
	srcType := p.typeOf(n.Args[0])
	if srcType == nil {
		return
	}
	if b, ok := types.Unalias(t).(*types.Basic); ok && b.Kind() == types.UnsafePointer {
		p.nodeOf(n.Args[0]).addBlocker(n.Pos(), "it becomes an unsafe.Pointer")
		return
	}
	var dst *node
	if hasTimer(t) {
		dst = p.nodeOfExpr(n)
		p.uniteTypeExpr(n.Fun, dst)
		if srcType == types.Typ[types.UnsafePointer] {
			dst.addBlocker(n.Pos(), "it was an unsafe.Pointer")
		}
	} else {
		dst = p.nodeOfNamed(t)
	}
	p.uniteAssignment(dst, t, n.Args[0])

	// The conversion may be between pointers to structs with the same fields.
	p.uniteFields(dst, deref(t.Underlying()), p.nodeOf(n.Args[0]), deref(srcType.Underlying()))
}

func (p *program) visitBuiltin(n *ast.CallExpr, name string) {
	switch name {
	case "new", "make":
		if !hasTimer(p.typeOf(n)) {
			return
		}
		m := p.nodeOfExpr(n)
		if !p.pkg.Info.Types[n.Args[0]].IsType() { // new(value), from Go 1.26 on
			unite(m, p.nodeOf(n.Args[0]))
			return
		}
		if sel, ok := n.Args[0].(*ast.SelectorExpr); ok && name == "new" && timerObjectName(p.pkg.Info.Uses[sel.Sel]) != "" {
			p.uniteTypeExpr(&ast.StarExpr{Star: n.Args[0].Pos(), X: n.Args[0]}, m)
			return
		}
		p.uniteTypeExpr(n.Args[0], m)
	case "append":
		t := p.typeOf(n.Args[0])
		s, ok := t.Underlying().(*types.Slice)
		if !ok {
			return
		}
		for _, arg := range n.Args[1:] {
			if n.Ellipsis.IsValid() {
				p.uniteAssignment(p.nodeOf(n.Args[0]), t, arg)
			} else {
				p.uniteAssignment(p.nodeOfPart(n.Args[0], s.Elem()), s.Elem(), arg)
			}
		}
	case "copy":
		p.uniteOperands(n.Args[0], n.Args[1])
	case "delete":
		if m, ok := p.typeOf(n.Args[0]).Underlying().(*types.Map); ok {
			p.uniteAssignment(p.nodeOfPart(n.Args[0], m.Key()), m.Key(), n.Args[1])
		}
	case "len", "cap":
		p.visitLenCall(n, name)
	}
}

func deref(t types.Type) types.Type {
	if t == nil {
		return types.Typ[types.Invalid]
	}
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		return ptr.Elem()
	}
	return t
}

func (p *program) visitLiteral(n *ast.CompositeLit, stack []ast.Node) {
	t := p.typeOf(n)
	if t == nil {
		return
	}
	literalNode := p.nodeOf(n)
	if literalNode != nil && n.Type != nil {
		parent, _ := stack[len(stack)-1].(*ast.UnaryExpr)
		if parent != nil && parent.Op == token.AND && timerTypeName(t) != "" {
			p.uniteTypeExpr(&ast.StarExpr{Star: n.Type.Pos(), X: n.Type}, literalNode)
		} else {
			p.uniteTypeExpr(n.Type, literalNode)
		}
	}
	underlying := t.Underlying()
	if ptr, ok := underlying.(*types.Pointer); ok { // {} for &T{} in a []*T
		underlying = ptr.Elem().Underlying()
	}
	if s, ok := underlying.(*types.Struct); ok {
		p.visitStructLiteral(n, s, literalNode)
		return
	}
	var key, elem types.Type
	switch u := underlying.(type) {
	case *types.Map:
		key, elem = u.Key(), u.Elem()
	case *types.Slice:
		elem = u.Elem()
	case *types.Array:
		elem = u.Elem()
	default:
		return
	}
	visitElement := func(e ast.Expr, t types.Type) {
		elemNode := p.nodeOfNamed(t)
		if hasTimer(t) {
			elemNode = literalNode
		}
		if lit, ok := e.(*ast.CompositeLit); ok && lit.Type == nil && elemNode != nil && hasTimer(t) {
			p.elidedLiterals[lit] = elemNode
		}
		p.uniteAssignment(elemNode, t, e)
	}
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key != nil {
				visitElement(kv.Key, key)
			}
			e = kv.Value
		}
		visitElement(e, elem)
	}
}

func (p *program) visitStructLiteral(n *ast.CompositeLit, s *types.Struct, literalNode *node) {
	for i, e := range n.Elts {
		var field *types.Var
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			id, _ := kv.Key.(*ast.Ident)
			if id == nil {
				continue
			}
			field, _ = p.pkg.Info.Uses[id].(*types.Var)
			e = kv.Value
		} else if i < s.NumFields() {
			field = s.Field(i)
		}
		if field == nil {
			continue
		}
		p.uniteAssignment(p.nodeOfField(field, literalNode), field.Type(), e)
	}
}
