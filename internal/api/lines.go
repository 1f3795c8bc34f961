package main

import (
	"fmt"
	"go/types"
	"strings"
)

// A lister collects the lines of one package.
type lister struct {
	qualifier types.Qualifier
	lines     []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *lister) object(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		l.add("const %s %s = %s", obj.Name(), l.typ(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		l.add("var %s %s", obj.Name(), l.typ(obj.Type()))
	case *types.Func:
		sig := obj.Signature()
		l.add("func %s%s%s", obj.Name(), l.params(sig.TypeParams()), l.signature(sig))
	case *types.TypeName:
		l.typeName(obj)
	}
}

func (l *lister) typeName(obj *types.TypeName) {
	if obj.IsAlias() {
		l.add("type %s = %s", obj.Name(), l.typ(types.Unalias(obj.Type())))
		return
	}
	named := obj.Type().(*types.Named)
	name := obj.Name() + l.params(named.TypeParams())
	switch u := named.Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct", name)
		for f := range u.Fields() {
			if f.Exported() {
				l.add("type %s struct, %s", name, l.field(f))
			}
		}
	case *types.Interface:
		l.add("type %s interface { %s }", name, l.methods(u))
		return
	default:
		l.add("type %s %s", name, l.typ(u))
	}
	// The method set of the pointer has those of the value, and those of fields that
	// are embedded.
	onValue := types.NewMethodSet(named)
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if !m.Obj().Exported() {
			continue
		}
		receiver := "*" + obj.Name()
		if onValue.Lookup(nil, m.Obj().Name()) != nil {
			receiver = obj.Name()
		}
		l.add("method (%s) %s%s", receiver, m.Obj().Name(), l.signature(m.Type().(*types.Signature)))
	}
}

func (l *lister) field(f *types.Var) string {
	if f.Embedded() {
		return "embedded " + l.typ(f.Type())
	}
	return f.Name() + " " + l.typ(f.Type())
}

// methods returns what an interface asks for, on one line.
func (l *lister) methods(u *types.Interface) string {
	var all []string
	sealed := false
	for m := range u.Methods() {
		if !m.Exported() {
			sealed = true
			continue
		}
		all = append(all, m.Name()+l.signature(m.Signature()))
	}
	if sealed {
		all = append(all, "unexported methods")
	}
	return strings.Join(all, "; ")
}

// params returns the parameters of a generic function or type, or nothing.
func (l *lister) params(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var all []string
	for p := range list.TypeParams() {
		all = append(all, p.Obj().Name()+" "+l.typ(p.Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// signature returns the types of a function's parameters and results. Their names are
// no part of the surface.
func (l *lister) signature(sig *types.Signature) string {
	bare := types.NewSignatureType(nil, nil, nil, unnamed(sig.Params()), unnamed(sig.Results()), sig.Variadic())
	return strings.TrimPrefix(l.typ(bare), "func")
}

func unnamed(t *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range t.Variables() {
		vars = append(vars, types.NewParam(v.Pos(), v.Pkg(), "", v.Type()))
	}
	return types.NewTuple(vars...)
}

func (l *lister) typ(t types.Type) string { return types.TypeString(t, l.qualifier) }
