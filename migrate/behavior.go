package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// blockOtherBehavior adds blockers to classes that compile after a rewrite, but may behave
// differently.
func (t *tagged) blockOtherBehavior() {
	t.findExposed()
	for _, f := range t.files {
		t.visitFile(f)
	}
	if t.hasAssertion {
		for _, inst := range t.info.Instances {
			for arg := range inst.TypeArgs.Types() {
				t.converted = append(t.converted, t.classesOf(arg)...)
			}
		}
		for _, c := range t.converted {
			c.addBlocker(t.p.pkg.Files[0].Package, "it becomes an interface value, or generic code handles it, and a type assertion in the package may return it")
		}
	}
	for _, s := range t.p.newCalls {
		if len(t.channelLens) > 0 {
			s.class.addBlocker(t.channelLens[0], "len or cap of a channel that may be its own: always 0 in package time, but not in package timer")
		}
	}
	t.blockUsedInUnseenFiles()
}

// classesOf returns the classes of the timers in a type.
func (t *tagged) classesOf(typ types.Type) (classes []*class) {
	walkType(typ, func(typ types.Type) {
		if named, ok := typ.(*types.Named); ok && named.Obj().Pkg() != nil {
			classes = append(classes, t.p.classesIn(named.Obj().Pkg().Path())...)
		}
	})
	return classes
}

// block adds a blocker to the classes of the timers in a type.
func (t *tagged) block(typ types.Type, pos token.Pos, reason string) {
	for _, c := range t.classesOf(typ) {
		c.addBlocker(t.originalPos(pos), reason)
	}
}

// walkType calls f with typ and every type that it is made of. It does not look into the
// definitions of named types.
func walkType(typ types.Type, f func(types.Type)) {
	if typ == nil {
		return
	}
	f(typ)
	switch typ := typ.(type) {
	case *types.Alias:
		walkType(typ.Rhs(), f)
	case *types.Named:
		for arg := range typ.TypeArgs().Types() {
			walkType(arg, f)
		}
	case *types.Map:
		walkType(typ.Key(), f)
		walkType(typ.Elem(), f)
	case *types.Tuple:
		for v := range typ.Variables() {
			walkType(v.Type(), f)
		}
	case *types.Signature:
		walkType(typ.Params(), f)
		walkType(typ.Results(), f)
	case *types.Struct:
		for v := range typ.Fields() {
			walkType(v.Type(), f)
		}
	case *types.Interface:
		for m := range typ.ExplicitMethods() {
			walkType(m.Type(), f)
		}
		for e := range typ.EmbeddedTypes() {
			walkType(e, f)
		}
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		walkType(typ.Elem(), f)
	}
}

// findExposed finds the named types that other packages can reach from exported names. It
// blocks the timers in them.
func (t *tagged) findExposed() {
	if name := t.pkg.Name(); name == "main" || strings.HasSuffix(name, "_test") {
		return
	}
	scope := t.pkg.Scope()
	for _, name := range scope.Names() {
		if obj := scope.Lookup(name); obj.Exported() {
			t.expose(obj, obj.Type())
		}
	}
}

// expose records that other packages can reach typ by the exported name of obj.
func (t *tagged) expose(obj types.Object, typ types.Type) {
	t.block(typ, obj.Pos(), obj.Name()+" is exported: another package may use it")
	walkType(typ, func(typ types.Type) {
		if isPool(typ) {
			t.poolClass().addBlocker(t.originalPos(obj.Pos()), obj.Name()+" is exported: another package may use it")
		}
		named, ok := typ.(*types.Named)
		if !ok || named.Obj().Pkg() != t.pkg || t.exposed[named.Obj()] {
			return
		}
		t.exposed[named.Obj()] = true
		for m := range named.Origin().Methods() {
			if m.Exported() {
				t.expose(m, m.Type())
			}
		}
		switch underlying := named.Origin().Underlying().(type) {
		case *types.Struct:
			for f := range underlying.Fields() {
				if f.Exported() || f.Embedded() {
					t.expose(f, f.Type())
				}
			}
		case *types.Interface:
			for m := range underlying.Methods() {
				if m.Exported() {
					t.expose(m, m.Type())
				}
			}
		default:
			t.expose(obj, underlying)
		}
	})
}

func (t *tagged) visitFile(f *ast.File) {
	ast.PreorderStack(f, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr:
			if tv := t.info.Types[n]; tv.IsValue() && timerTypeName(tv.Type) != "" {
				t.block(tv.Type, n.Pos(), "a time."+timerTypeName(tv.Type)+" is copied: a timer."+timerTypeName(tv.Type)+" must not be copied")
			}
		case *ast.SelectorExpr:
			sel := t.info.Selections[n]
			if sel == nil || sel.Obj().Pkg() == nil {
				break
			}
			for _, c := range t.p.classesIn(sel.Obj().Pkg().Path()) {
				c.stopCalled = c.stopCalled || sel.Obj().Name() == "Stop"
			}
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if typ := t.info.TypeOf(f.Type); len(f.Names) == 0 && timerTypeName(deref(typ)) == "Timer" {
					t.block(typ, f.Pos(), "embedded: timer.Timer has a method Deadline, which the struct would get")
				}
			}
		case *ast.TypeAssertExpr:
			if n.Type != nil {
				t.visitAssertion(n.X, n.Type)
			}
		case *ast.TypeSwitchStmt:
			var x ast.Expr
			ast.Inspect(n.Assign, func(n ast.Node) bool {
				if e, ok := n.(*ast.TypeAssertExpr); ok {
					x = e.X
				}
				return x == nil
			})
			for _, s := range n.Body.List {
				for _, e := range s.(*ast.CaseClause).List {
					t.visitAssertion(x, e)
				}
			}
		case *ast.CallExpr:
			t.visitCall(n)
		}
		t.visitConversions(n, stack)
		return true
	})
}

func (t *tagged) visitCall(n *ast.CallExpr) {
	if name := builtinName(t.info, n); name == "len" || name == "cap" {
		arg := ast.Unparen(n.Args[0])
		if sel, ok := arg.(*ast.SelectorExpr); ok && t.info.Selections[sel] != nil {
			if pkg := t.info.Selections[sel].Obj().Pkg(); pkg != nil && strings.HasPrefix(pkg.Path(), tagPrefix) {
				for _, c := range t.p.classesIn(pkg.Path()) {
					c.addBlocker(t.originalPos(n.Pos()), name+" of its channel is always 0 in package time, but not in package timer")
				}
				return
			}
		}
		typ := t.info.TypeOf(arg)
		_, isParam := types.Unalias(typ).(*types.TypeParam)
		if ch, ok := typ.Underlying().(*types.Chan); isParam || ok && ch.Dir() != types.SendOnly && mayBeTime(ch.Elem()) {
			t.channelLens = append(t.channelLens, t.originalPos(n.Pos()))
		}
	} else if tv := t.info.Types[n.Fun]; tv.IsType() && len(n.Args) == 1 {
		from := t.info.TypeOf(n.Args[0])
		if isUnsafePointer(tv.Type) || isUnsafePointer(from) {
			t.block(from, n.Pos(), "it becomes an unsafe.Pointer")
			t.block(tv.Type, n.Pos(), "it was an unsafe.Pointer")
		}
	}
}

func mayBeTime(elem types.Type) bool {
	_, isParam := types.Unalias(elem).(*types.TypeParam)
	return isParam || types.TypeString(elem, nil) == "time.Time"
}

func isUnsafePointer(typ types.Type) bool {
	b, ok := typ.Underlying().(*types.Basic)
	return ok && b.Kind() == types.UnsafePointer
}

// visitConversion handles a value that becomes a value of another type. It blocks those that
// become interface values, because code elsewhere may convert them back. It allows
// interface types that only this package can name, and functions that only print.
func (t *tagged) visitConversion(to, from types.Type, pos token.Pos, callee *types.Func) {
	if to == nil || from == nil || !isInterface(to) || isInterface(from) {
		return
	}
	if callee != nil && callee.FullName() == "(*sync.Pool).Put" {
		t.addPooled(from)
		return
	}
	named, ok := types.Unalias(to).(*types.Named)
	if ok && named.Obj().Pkg() == t.pkg && !t.exposed[named.Obj()] || callee != nil && onlyPrints(callee) {
		classes := t.classesOf(from)
		t.converted = append(t.converted, classes...)
		for m := range to.Underlying().(*types.Interface).Methods() {
			for _, c := range classes {
				c.stopCalled = c.stopCalled || m.Name() == "Stop"
			}
		}
		return
	}
	t.block(from, pos, "it becomes a value of an interface type, which other packages may convert back")
	if impl, ok := types.Unalias(deref(from)).(*types.Named); ok && impl.Obj().Pkg() == t.pkg {
		for m := range impl.Origin().Methods() {
			if m.Exported() {
				t.block(m.Type(), pos, "its receiver becomes a value of an interface type, which other packages may assert to have this method")
			}
		}
	}
}

// onlyPrints reports whether a function only prints or compares interface values.
func onlyPrints(f *types.Func) bool {
	if f.Pkg() == nil {
		return false
	}
	path := f.Pkg().Path()
	return slices.Contains([]string{"fmt", "log", "log/slog", "testing"}, path) || strings.HasPrefix(path, "github.com/stretchr/testify/")
}

// visitAssertion handles a type assertion or a case of a type switch. x is the interface
// value, typeExpr the type.
func (t *tagged) visitAssertion(x, typeExpr ast.Expr) {
	classes := t.classesOf(t.info.TypeOf(typeExpr))
	if len(classes) == 0 {
		return
	}
	fromPool := t.isFromPool(x)
	t.hasAssertion = t.hasAssertion || !fromPool
	for _, c := range classes {
		if fromPool {
			unite(t.poolClass(), c)
		} else {
			c.addBlocker(t.originalPos(typeExpr.Pos()), "a type assertion names its type")
		}
	}
}

// blockUsedInUnseenFiles blocks a variable, field or function if its name occurs in an
// unseen file of the package. Unseen files have no type information.
func (t *tagged) blockUsedInUnseenFiles() {
	used := make(map[string]token.Pos)
	for _, f := range t.p.unseen {
		isTest := strings.HasSuffix(t.p.positionOf(f.Package).Filename, "_test.go")
		if f.Name.Name != t.pkg.Name() || isTest && !importsPath(f, "time") {
			continue // a test that does not import time works with either type
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				used[id.Name] = id.Pos()
			}
			return true
		})
	}
	for _, obj := range t.info.Defs {
		if obj == nil || obj.Name() == "Timer" || obj.Name() == "Ticker" || !isMember(obj) && obj.Parent() != t.pkg.Scope() {
			continue
		}
		if pos, ok := used[obj.Name()]; ok {
			reason := obj.Name() + " may be used there, in a file that the analysis does not see"
			t.block(obj.Type(), pos, reason)
			if _, isType := obj.(*types.TypeName); isType && !types.IsInterface(obj.Type()) {
				if _, isStruct := obj.Type().Underlying().(*types.Struct); !isStruct {
					t.block(obj.Type().Underlying(), pos, reason)
				}
			}
		}
	}
}
