package migrate

import (
	"go/types"
)

// timerType returns "Timer" or "Ticker" if t is package time's type of that name, and
// else "". A pointer to the type does not count.
func timerType(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return ""
	}
	return timerName(named.Obj())
}

func timerName(obj types.Object) string {
	if _, ok := obj.(*types.TypeName); !ok || obj.Pkg() == nil || obj.Pkg().Path() != "time" {
		return ""
	}
	if obj.Name() == "Timer" || obj.Name() == "Ticker" {
		return obj.Name()
	}
	return ""
}

// mentions reports whether the type itself contains package time's timers. It does not
// look into the definitions of named types.
func mentions(t types.Type) bool {
	found := false
	walkType(t, func(t types.Type) { found = found || timerType(t) != "" })
	return found
}

// walkType calls f with t and every type that t is made of. It stops at named types,
// except for their type arguments.
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

// uniteAliases unites n with the aliases that the type t is written with.
func (p *program) uniteAliases(n *node, t types.Type) {
	walkType(t, func(t types.Type) {
		if a, ok := t.(*types.Alias); ok && mentions(a.Rhs()) {
			unite(n, p.object(a.Obj()))
		}
	})
}

// definedNode returns the node of a named map, slice, function or similar type, or a
// pointer to one, whose definition contains timers. It returns nil for any other type.
func (p *program) definedNode(t types.Type) *node {
	if t == nil {
		return nil
	}
	t = types.Unalias(t)
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
	}
	named, ok := t.(*types.Named)
	if !ok || timerType(named) != "" {
		return nil
	}
	under := named.Origin().Underlying()
	switch under.(type) {
	case *types.Struct, *types.Interface:
		return nil
	}
	if !mentions(under) {
		return nil
	}
	return p.object(named.Origin().Obj())
}
