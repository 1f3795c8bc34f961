package migrate

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
)

// interfaceConversion is a conversion between an interface value and a value whose type
// contains timers. A type assertion is such a conversion too.
type interfaceConversion struct {
	node    *node
	typeKey string // of the value that is not an interface
}

func newInterfaceConversion(n *node, t types.Type) interfaceConversion {
	return interfaceConversion{n, typeKey(t)}
}

// typeKey returns a text that is the same for identical types, even if their package was
// type-checked twice. Different types may also have the same text.
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

// addToInterface records that a value of type valueType becomes a value of the interface
// type t. n is the value's node, or nil.
func (p *program) addToInterface(n *node, valueType, t types.Type) {
	p.hasGenericConversion = p.hasGenericConversion || hasTypeParam(valueType) && !isInterface(valueType)
	if n != nil && hasTimer(valueType) && !isInterface(valueType) {
		p.toInterface = append(p.toInterface, newInterfaceConversion(n, valueType))
		n.representative().stopCalled = n.representative().stopCalled || hasMethod(t, "Stop")
	}
	p.uniteMethods(valueType, t)
}

// uniteMethods handles a type impl that implements the interface type t. Methods of the
// same name must be rewritten together.
func (p *program) uniteMethods(impl, t types.Type) {
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		return
	}
	for m := range iface.Methods() {
		if !hasTimer(originOf(m).Type()) {
			continue
		}
		if obj, _, _ := types.LookupFieldOrMethod(impl, true, p.pkg.Types, m.Name()); obj != nil && obj != m && hasTimer(originOf(obj).Type()) {
			unite(p.nodeOfObject(m), p.nodeOfObject(obj))
		}
	}
}

// addFromInterface records a type assertion to type t, or a comparison of an interface
// value with a value of type t.
func (p *program) addFromInterface(n *node, t types.Type) {
	if n != nil && hasTimer(t) && !isInterface(t) {
		p.fromInterface = append(p.fromInterface, newInterfaceConversion(n, t))
	}
}

// visitAssertion handles a type assertion or a case of a type switch. te is the type in the
// source, m the node of the result.
func (p *program) visitAssertion(te ast.Expr, m *node) {
	t := p.typeOf(te)
	if t == nil {
		return
	}
	p.hasGenericConversion = p.hasGenericConversion || hasTypeParam(t)
	if hasTimer(t) {
		p.uniteTypeExpr(te, m)
		p.addFromInterface(m, t)
	}
}

// uniteInterfaceConversions records that a timer in an interface value must be rewritten
// together with the type assertions that may return it. It runs last: see
// site.blockersBeforeUnite.
func (p *program) uniteInterfaceConversions() {
	nodesByType := make(map[string][]*node)
	for _, u := range p.fromInterface {
		nodesByType[u.typeKey] = append(nodesByType[u.typeKey], u.node)
	}
	for _, b := range p.toInterface {
		if nodesByType[b.typeKey] != nil {
			nodesByType[b.typeKey] = append(nodesByType[b.typeKey], b.node)
		}
	}
	if p.hasGenericConversion && len(p.typeArgNodes) > 0 {
		allNodes := p.typeArgNodes
		for _, b := range slices.Concat(p.toInterface, p.fromInterface) {
			allNodes = append(allNodes, b.node)
		}
		nodesByType = map[string][]*node{"": allNodes}
	}
	for _, nodes := range nodesByType {
		for _, n := range nodes {
			for _, s := range n.representative().sites {
				if !s.viaInterface {
					s.viaInterface, s.blockersBeforeUnite = true, slices.Clone(n.representative().blockers)
				}
			}
		}
	}
	for _, nodes := range nodesByType {
		for _, n := range nodes[1:] {
			unite(nodes[0], n)
		}
	}
}
