package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// A node stands for the timers in the type of one object or expression: of a
// variable, a field, a function's parameters and results together, a literal.
// What flows from one to another has one type, before and after: their nodes
// are united, into classes. A class is rewritten as a whole or not at all.
type node struct {
	parent *node // nil for the one that stands for its class

	// All below is that of the class.

	size    int
	blocks  []block
	sites   []*site
	marks   []*mark
	names   []name
	stopped bool      // a Stop is called
	news    token.Pos // a NewTimer or NewTicker: what is garbage in package time
}

// block is a reason not to rewrite a class.
type block struct {
	pos    token.Pos
	reason string
}

// bothTypes is a reason that concerns the interface values of a class themselves.
const bothTypes = "a type switch has a case for package timer's type too"

// name is one by which other files may know a member of the class.
type name struct {
	pkg, name string
	member    bool // a field or a method
}

// mark is a place where the type time.Timer or time.Ticker is written.
type mark struct {
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

// unite makes one class of two nodes'. Either may be nil.
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
	a.marks = append(a.marks, b.marks...)
	a.names = append(a.names, b.names...)
	a.stopped = a.stopped || b.stopped
	if !a.news.IsValid() {
		a.news = b.news
	}
	b.blocks, b.sites, b.marks, b.names = nil, nil, nil, nil
}

// block keeps a class from being rewritten. The node may be nil.
func (n *node) block(pos token.Pos, reason string) {
	if n == nil {
		return
	}
	c := n.class()
	if b := (block{pos, reason}); !slices.Contains(c.blocks, b) {
		c.blocks = append(c.blocks, b)
	}
}

// at returns the node of a place, and whether it is new.
func (p *program) at(pos token.Pos, kind byte) (*node, bool) {
	k := p.key(pos, kind)
	if n := p.nodes[k]; n != nil {
		return n, false
	}
	n := &node{size: 1}
	p.nodes[k] = n
	return n, true
}

// expression returns the node of an expression that is no object's.
func (p *program) expression(e ast.Expr) *node {
	n, _ := p.at(e.Pos(), 'e')
	return n
}

// object returns the node of an object whose type has a timer.
func (p *program) object(obj types.Object) *node {
	obj = origin(obj)
	if obj.Pkg() == nil || !p.set[obj.Pkg().Path()] {
		// Each time a node of its own: what one package is asked to do with a timer
		// says nothing of the next one that uses it.
		n := &node{size: 1}
		where := "another package"
		if obj.Pkg() != nil {
			where = "package " + obj.Pkg().Path()
		}
		n.block(p.here, obj.Name()+", of "+where+", has package time's type")
		return n
	}
	n, fresh := p.at(obj.Pos(), 'o')
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

// origin returns the generic object that obj was made of, if it was.
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

// unifyMethods has methods of one name share a class: an interface's and those of
// the types that implement it.
func (p *program) unifyMethods() {
	for _, nodes := range p.methods {
		for _, n := range nodes[1:] {
			unite(nodes[0], n)
		}
	}
}
