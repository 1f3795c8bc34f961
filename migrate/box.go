package migrate

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
)

// boxing is a conversion between a value made of timers and an interface value. A type
// assertion can only get back a value of the type that was boxed.
type boxing struct {
	node *node
	typ  string
}

func boxingOf(n *node, t types.Type) boxing { return boxing{n, typeKey(t)} }

// typeKey returns the same text for identical types, even if a package was type-checked
// twice. Different types may have the same text.
func typeKey(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		return "*" + typeKey(t.Elem())
	case *types.Slice:
		return "[]" + typeKey(t.Elem())
	case *types.Array:
		return fmt.Sprint("[", t.Len(), "]", typeKey(t.Elem()))
	case *types.Chan:
		return fmt.Sprint("chan ", t.Dir(), typeKey(t.Elem()))
	case *types.Map:
		return "map[" + typeKey(t.Key()) + "]" + typeKey(t.Elem())
	case *types.Named:
		key := types.TypeString(t.Origin(), nil)
		for arg := range t.TypeArgs().Types() {
			key += "," + typeKey(arg)
		}
		return key
	case *types.Tuple:
		key := ""
		for v := range t.Variables() { // without their names
			key += typeKey(v.Type()) + ","
		}
		return key
	case *types.Signature:
		return fmt.Sprint("func", t.Variadic(), "(", typeKey(t.Params()), ")", typeKey(t.Results()))
	case *types.Struct:
		key := "struct"
		for f := range t.Fields() {
			key += " " + f.Name() + " " + typeKey(f.Type())
		}
		return key
	case *types.Interface:
		return "interface"
	}
	return types.TypeString(t, nil)
}

// hasTypeParam reports whether a type contains a type parameter.
func hasTypeParam(t types.Type) bool {
	found := false
	walkType(t, func(t types.Type) {
		_, ok := t.(*types.TypeParam)
		found = found || ok
	})
	return found
}

// box notes that a value of type from becomes an interface value of type t. The value's
// node n may be nil.
func (p *program) box(n *node, from, t types.Type) {
	p.generic = p.generic || hasTypeParam(from) && !isBox(from)
	if n != nil && mentions(from) && !isBox(from) {
		p.boxed = append(p.boxed, boxingOf(n, from))
		n.class().stopped = n.class().stopped || hasMethod(t, "Stop")
	}
	p.uniteMethods(from, t)
}

// uniteMethods unites the methods of an interface type with those of a type that
// implements it.
func (p *program) uniteMethods(from, t types.Type) {
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		return
	}
	for m := range iface.Methods() {
		if !mentions(origin(m).Type()) {
			continue
		}
		if obj, _, _ := types.LookupFieldOrMethod(from, true, p.pkg.Types, m.Name()); obj != nil && obj != m && mentions(origin(obj).Type()) {
			unite(p.object(m), p.object(obj))
		}
	}
}

// unbox notes that an interface value is asserted to be of type t, or compared with a
// value of type t.
func (p *program) unbox(n *node, t types.Type) {
	if n != nil && mentions(t) && !isBox(t) {
		p.unboxed = append(p.unboxed, boxingOf(n, t))
	}
}

// visitAssertion notes a type assertion, or a case of a type switch.
func (p *program) visitAssertion(te ast.Expr, m *node) {
	t := p.typeOf(te)
	if t == nil {
		return
	}
	p.generic = p.generic || hasTypeParam(t)
	if mentions(t) {
		p.claim(te, m)
		p.unbox(m, t)
	}
}

// unifyBoxes puts timers that became interface values into one class with the type
// assertions that may return them. It runs last, so that the report on a call shows
// only the reasons found without it.
func (p *program) unifyBoxes() {
	groups := make(map[string][]*node)
	for _, u := range p.unboxed {
		groups[u.typ] = append(groups[u.typ], u.node)
	}
	for _, b := range p.boxed {
		if groups[b.typ] != nil {
			groups[b.typ] = append(groups[b.typ], b.node)
		}
	}
	if p.generic && len(p.instances) > 0 {
		all := p.instances
		for _, b := range slices.Concat(p.boxed, p.unboxed) {
			all = append(all, b.node)
		}
		groups = map[string][]*node{"": all}
	}
	for _, nodes := range groups {
		for _, n := range nodes {
			for _, s := range n.class().sites {
				if !s.boxed {
					s.boxed, s.own = true, slices.Clone(n.class().blocks)
				}
			}
		}
	}
	for _, nodes := range groups {
		for _, n := range nodes[1:] {
			unite(nodes[0], n)
		}
	}
}
