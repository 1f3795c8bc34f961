package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// A node stands for the timers in the type of one variable, field, literal or
// expression, or of a function's parameters and results together. A value keeps one
// type wherever it flows, so the nodes along its way are united into a class
// (union-find). A class is rewritten as a whole or not at all.
type node struct {
	parent *node // nil for the one that stands for its class

	// The fields below are valid in the representative of a class.

	size     int
	blocks   []block
	sites    []*site
	typeUses []*typeUse
	names    []name
	stopped  bool      // a Stop is called
	newCall  token.Pos // a call of NewTimer or NewTicker, or NoPos
}

// block is a reason not to rewrite a class.
type block struct {
	pos    token.Pos
	reason string
}

// bothTypes is a reason that applies to the interface values of a class, not only to
// one call.
const bothTypes = "a type switch has a case for package timer's type too"

// name is a name under which other files may use a member of the class.
type name struct {
	pkg, name string
	member    bool // a field or a method
}

// typeUse is a position where the source says time.Timer or time.Ticker.
type typeUse struct {
	file  *file
	ident *ast.Ident // the package's name
}

func (n *node) class() *node {
	for n.parent != nil {
		if n.parent.parent != nil {
			n.parent = n.parent.parent
		}
		n = n.parent
	}
	return n
}

// unite merges the classes of two nodes. Either may be nil.
func unite(a, b *node) {
	if a == nil || b == nil {
		return
	}
	a, b = a.class(), b.class()
	if a == b {
		return
	}
	if a.size < b.size {
		a, b = b, a
	}
	b.parent = a
	a.size += b.size
	a.blocks = append(a.blocks, b.blocks...)
	a.sites = append(a.sites, b.sites...)
	a.typeUses = append(a.typeUses, b.typeUses...)
	a.names = append(a.names, b.names...)
	a.stopped = a.stopped || b.stopped
	if !a.newCall.IsValid() {
		a.newCall = b.newCall
	}
	b.blocks, b.sites, b.typeUses, b.names = nil, nil, nil, nil
}

// block records a reason not to rewrite the class of n. n may be nil.
func (n *node) block(pos token.Pos, reason string) {
	if n == nil {
		return
	}
	c := n.class()
	if b := (block{pos, reason}); !slices.Contains(c.blocks, b) {
		c.blocks = append(c.blocks, b)
	}
}

// nodeAt returns the node for a position, and whether the node is new.
func (p *program) nodeAt(pos token.Pos, kind byte) (*node, bool) {
	k := p.key(pos, kind)
	if n := p.nodes[k]; n != nil {
		return n, false
	}
	n := &node{size: 1}
	p.nodes[k] = n
	return n, true
}

// expression returns the node of an expression that is not a variable, field or
// function.
func (p *program) expression(e ast.Expr) *node {
	n, _ := p.nodeAt(e.Pos(), 'e')
	return n
}

// object returns the node of an object whose type contains a timer.
func (p *program) object(obj types.Object) *node {
	obj = origin(obj)
	if obj.Pkg() == nil || !p.paths[obj.Pkg().Path()] {
		// Each use of another package's object gets its own node: one use says nothing
		// about the next.
		n := &node{size: 1}
		where := "another package"
		if obj.Pkg() != nil {
			where = "package " + obj.Pkg().Path()
		}
		n.block(p.visiting, obj.Name()+" of "+where+" has package time's type")
		return n
	}
	n, fresh := p.nodeAt(obj.Pos(), 'o')
	if !fresh {
		return n
	}
	p.uniteAliases(n, obj.Type())
	if isKnownOutside(obj) {
		n.names = append(n.names, name{obj.Pkg().Path(), obj.Name(), isMember(obj)})
	}
	if f, ok := obj.(*types.Func); ok && f.Signature().Recv() != nil {
		p.methods[f.Name()] = append(p.methods[f.Name()], n)
	}
	return n
}

// origin returns the generic object that obj is an instance of, or obj itself.
func origin(obj types.Object) types.Object {
	switch obj := obj.(type) {
	case *types.Var:
		return obj.Origin()
	case *types.Func:
		return obj.Origin()
	}
	return obj
}

// isKnownOutside reports whether other files may use the object by its name.
func isKnownOutside(obj types.Object) bool {
	if v, ok := obj.(*types.Var); ok && v.IsField() {
		return true
	}
	if f, ok := obj.(*types.Func); ok && f.Signature().Recv() != nil {
		return true
	}
	return obj.Parent() == obj.Pkg().Scope()
}

// unifyMethods unites methods of the same name: those of an interface and those of the
// types that implement it.
func (p *program) unifyMethods() {
	for _, nodes := range p.methods {
		for _, n := range nodes[1:] {
			unite(nodes[0], n)
		}
	}
}
