package migrate

import (
	"go/types"
)

// timerType returns "Timer" or "Ticker" if t is package time's type of that name,
// not a pointer to it, and else nothing.
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

// mentions reports whether the type is made of package time's timers, by itself:
// not through the definition of a named type.
func mentions(t types.Type) bool {
	found := false
	walkType(t, func(t types.Type) { found = found || timerType(t) != "" })
	return found
}

// walkType calls f with the type and with all that it is made of, down to named
// types and into their arguments.
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

// uniteAliases has a node share its class with those of the aliases that its type
// is written with.
func (p *program) uniteAliases(n *node, t types.Type) {
	walkType(t, func(t types.Type) {
		if a, ok := t.(*types.Alias); ok && mentions(a.Rhs()) {
			unite(n, p.object(a.Obj()))
		}
	})
}

// definedNode returns the node of a named type whose definition is made of timers
// and which can be taken apart: a map, a slice, a function and so on, or a pointer
// to such. It returns nil for any other type.
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
