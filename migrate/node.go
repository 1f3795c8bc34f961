package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// A node stands for the timers in the type of a variable, field or expression, or in the
// signature of a function. Nodes that must be rewritten together form a class: for example
// a variable and the field that it is assigned to.
type node struct {
	parent *node // a node nearer to the class's representative; nil for the representative

	// The fields below are used only in a representative.

	nodeCount    int
	blockers     []blocker
	sites        []*site
	typeUses     []*typeUse
	visibleNames []visibleName
	stopCalled   bool      // the program calls Stop of one of the timers
	newCallPos   token.Pos // a call of NewTimer or NewTicker, or NoPos
}

// A blocker is a reason not to rewrite the nodes of a class.
type blocker struct {
	pos    token.Pos
	reason string // the text of the report: why the class is not rewritten
}

// reasonBothTypes is a reason why a type in a type switch is not rewritten.
const reasonBothTypes = "a type switch has a case for package timer's type too"

// visibleName is the name of a variable, function, field or method that other files may
// use.
type visibleName struct {
	pkgPath, name string
	isMember      bool // it is a field or a method
}

// typeUse is a place where the source says time.Timer or time.Ticker.
type typeUse struct {
	file     *file
	pkgIdent *ast.Ident // the name before the dot
}

// representative returns the representative of n's class: the nodes that must be rewritten
// together with n.
func (n *node) representative() *node {
	for n.parent != nil {
		if n.parent.parent != nil {
			n.parent = n.parent.parent
		}
		n = n.parent
	}
	return n
}

// unite records that two nodes must be rewritten together, by joining their classes. Either
// node may be nil.
func unite(a, b *node) {
	if a == nil || b == nil {
		return
	}
	a, b = a.representative(), b.representative()
	if a == b {
		return
	}
	if a.nodeCount < b.nodeCount {
		a, b = b, a
	}
	b.parent = a
	a.nodeCount += b.nodeCount
	a.blockers = append(a.blockers, b.blockers...)
	a.sites = append(a.sites, b.sites...)
	a.typeUses = append(a.typeUses, b.typeUses...)
	a.visibleNames = append(a.visibleNames, b.visibleNames...)
	a.stopCalled = a.stopCalled || b.stopCalled
	if !a.newCallPos.IsValid() {
		a.newCallPos = b.newCallPos
	}
	b.blockers, b.sites, b.typeUses, b.visibleNames = nil, nil, nil, nil
}

// addBlocker records a reason not to rewrite n, nor the nodes that must be rewritten
// together with n. n may be nil.
func (n *node) addBlocker(pos token.Pos, reason string) {
	if n == nil {
		return
	}
	c := n.representative()
	if b := (blocker{pos, reason}); !slices.Contains(c.blockers, b) {
		c.blockers = append(c.blockers, b)
	}
}

// nodeAt returns the node for a source position, and whether the node is new.
func (p *program) nodeAt(pos token.Pos, kind byte) (*node, bool) {
	k := p.keyAt(pos, kind)
	if n := p.nodes[k]; n != nil {
		return n, false
	}
	n := &node{nodeCount: 1}
	p.nodes[k] = n
	return n, true
}

// nodeOfExpr returns the node of an expression itself, such as a call or a literal. For a
// variable, field or function see nodeOfObject.
func (p *program) nodeOfExpr(e ast.Expr) *node {
	n, _ := p.nodeAt(e.Pos(), 'e')
	return n
}

// nodeOfObject returns the node of a variable, field or function whose type contains a
// timer.
func (p *program) nodeOfObject(obj types.Object) *node {
	obj = originOf(obj)
	if obj.Pkg() == nil || !p.pkgPaths[obj.Pkg().Path()] {
		// A name of another module cannot be rewritten. Each use gets a new node, so that
		// blocking one use does not block the others.
		n := &node{nodeCount: 1}
		location := "another package"
		if obj.Pkg() != nil {
			location = "package " + obj.Pkg().Path()
		}
		n.addBlocker(p.currentPos, obj.Name()+" of "+location+" has package time's type")
		return n
	}
	n, isNew := p.nodeAt(obj.Pos(), 'o')
	if !isNew {
		return n
	}
	p.uniteAliases(n, obj.Type())
	if isVisible(obj) {
		n.visibleNames = append(n.visibleNames, visibleName{obj.Pkg().Path(), obj.Name(), isMember(obj)})
	}
	if f, ok := obj.(*types.Func); ok && f.Signature().Recv() != nil {
		p.methods[f.Name()] = append(p.methods[f.Name()], n)
	}
	return n
}

// originOf returns the generic object that obj instantiates, or obj if it is not an instance.
func originOf(obj types.Object) types.Object {
	switch obj := obj.(type) {
	case *types.Var:
		return obj.Origin()
	case *types.Func:
		return obj.Origin()
	}
	return obj
}

// isVisible reports whether other files may use the object by its name.
func isVisible(obj types.Object) bool {
	if v, ok := obj.(*types.Var); ok && v.IsField() {
		return true
	}
	if f, ok := obj.(*types.Func); ok && f.Signature().Recv() != nil {
		return true
	}
	return obj.Parent() == obj.Pkg().Scope()
}

// uniteSameNamedMethods records that methods with the same name must be rewritten
// together: an interface may declare one that the others implement.
func (p *program) uniteSameNamedMethods() {
	for _, nodes := range p.methods {
		for _, n := range nodes[1:] {
			unite(nodes[0], n)
		}
	}
}
