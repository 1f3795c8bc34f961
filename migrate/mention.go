package migrate

import (
	"go/types"
)

// timerTypeName returns "Timer" for time.Timer, "Ticker" for time.Ticker, and "" for any
// other type, including pointers to these.
func timerTypeName(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return ""
	}
	return timerObjectName(named.Obj())
}

func timerObjectName(obj types.Object) string {
	if _, ok := obj.(*types.TypeName); !ok || obj.Pkg() == nil || obj.Pkg().Path() != "time" {
		return ""
	}
	if obj.Name() == "Timer" || obj.Name() == "Ticker" {
		return obj.Name()
	}
	return ""
}

// hasTimer reports whether the type t contains time.Timer or time.Ticker, as []*time.Timer
// does. It does not look into the definitions of named types.
func hasTimer(t types.Type) bool {
	found := false
	walkType(t, func(t types.Type) { found = found || timerTypeName(t) != "" })
	return found
}

// walkType calls f with t and every type that t is made of. For named types it visits only
// the type arguments.
func walkType(t types.Type, f func(types.Type)) {
	if t == nil {
		return
	}
	f(t)
	switch t := t.(type) {
	case *types.Alias:
		walkType(t.Rhs(), f)
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			walkType(arg, f)
		}
	case *types.Pointer:
		walkType(t.Elem(), f)
	case *types.Slice:
		walkType(t.Elem(), f)
	case *types.Array:
		walkType(t.Elem(), f)
	case *types.Chan:
		walkType(t.Elem(), f)
	case *types.Map:
		walkType(t.Key(), f)
		walkType(t.Elem(), f)
	case *types.Tuple:
		for v := range t.Variables() {
			walkType(v.Type(), f)
		}
	case *types.Signature:
		walkType(t.Params(), f)
		walkType(t.Results(), f)
	case *types.Struct:
		for v := range t.Fields() {
			walkType(v.Type(), f)
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			walkType(m.Type(), f)
		}
	}
}

// uniteAliases records that the type aliases in t must be rewritten together with n.
func (p *program) uniteAliases(n *node, t types.Type) {
	walkType(t, func(t types.Type) {
		if a, ok := t.(*types.Alias); ok && hasTimer(a.Rhs()) {
			unite(n, p.nodeOfObject(a.Obj()))
		}
	})
}

// nodeOfNamed returns the node of a named type, such as type queue []*time.Timer, or of a
// pointer to one. It returns nil for structs, interfaces, and types without timers.
func (p *program) nodeOfNamed(t types.Type) *node {
	if t == nil {
		return nil
	}
	t = types.Unalias(t)
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
	}
	named, ok := t.(*types.Named)
	if !ok || timerTypeName(named) != "" {
		return nil
	}
	underlying := named.Origin().Underlying()
	switch underlying.(type) {
	case *types.Struct, *types.Interface:
		return nil
	}
	if !hasTimer(underlying) {
		return nil
	}
	return p.nodeOfObject(named.Origin().Obj())
}
