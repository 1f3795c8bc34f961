package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// site is a call of package time's or context's that starts a timer, or such a
// function used as a value.
type site struct {
	file  *file
	sel   *ast.SelectorExpr
	call  string // "time.NewTimer"
	node  *node
	stays string // why it is package time's on purpose, or empty
	use   Use
	boxed bool    // it becomes an interface value, or comes from one
	own   []block // if so, what stands in its way, and not in that of the others
	mute  bool    // a call site in a test, which nobody asked about
}

// targets are the packages that take the place of others, by their paths.
var targets = map[string]string{"time": TimerPath, "context": DeadlinePath}

// constructors are the functions that start timers, and what the package that takes
// their package's place has instead.
var constructors = map[string]map[string]string{
	"time": {
		"AfterFunc": "AfterFunc",
		"NewTimer":  "NewTimer",
		"NewTicker": "NewTicker",
		"Sleep":     "Sleep",
		"After":     "",
		"Tick":      "",
	},
	"context": {
		"WithTimeout":       "WithTimeout",
		"WithDeadline":      "WithDeadline",
		"WithTimeoutCause":  "WithTimeoutCause",
		"WithDeadlineCause": "WithDeadlineCause",
	},
}

func (p *program) visitSelector(n *ast.SelectorExpr, stack []ast.Node) {
	if path, name := constructor(p.pkg.Info.Uses[n.Sel]); path != "" {
		p.addSite(n, path, name, stack)
		return
	}
	if obj := p.pkg.Info.Uses[n.Sel]; obj != nil && timerName(obj) != "" {
		p.addMark(n)
		return
	}
	p.visitChannel(n, stack)
	sel := p.pkg.Info.Selections[n]
	if sel == nil || sel.Kind() == types.FieldVal {
		return
	}
	if sel.Kind() == types.MethodExpr {
		p.nodeOf(n) // it claims what stands before the dot
	}
	if f, ok := sel.Obj().(*types.Func); ok && f.Name() == "Stop" && f.Pkg() != nil && f.Pkg().Path() == "time" {
		if m := p.receiver(n, sel); m != nil {
			m.class().stopped = true
		}
	}
}

// receiver returns the node of the timer whose method sel selects: of the operand,
// or of the field that it embeds.
func (p *program) receiver(n *ast.SelectorExpr, sel *types.Selection) *node {
	path := sel.Index()
	if len(path) == 1 {
		if sel.Kind() == types.MethodExpr {
			return p.nodeOf(n)
		}
		return p.nodeOf(n.X)
	}
	t := sel.Recv()
	var field *types.Var
	for _, i := range path[:len(path)-1] {
		s, ok := deref(t).Underlying().(*types.Struct)
		if !ok {
			return nil
		}
		field = s.Field(i)
		t = field.Type()
	}
	if !mentions(origin(field).Type()) {
		return nil
	}
	return p.object(field)
}

// constructor returns the path of the package and the name of a function that
// starts timers.
func constructor(obj types.Object) (path, name string) {
	f, ok := obj.(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil {
		return "", ""
	}
	if _, ok := constructors[f.Pkg().Path()][f.Name()]; !ok {
		return "", ""
	}
	return f.Pkg().Path(), f.Name()
}

// addMark notes a place where the type is written.
func (p *program) addMark(n *ast.SelectorExpr) {
	k := p.key(n.Pos(), 'e')
	if p.marks[k] != nil {
		return
	}
	m := &mark{file: p.file, ident: n.X.(*ast.Ident)}
	p.marks[k] = m
	node := p.expression(n).class()
	node.marks = append(node.marks, m)
	if p.file.fixed != "" {
		node.block(n.Pos(), p.file.fixed)
	}
}

// visitIdent looks for what was imported with a dot.
func (p *program) visitIdent(n *ast.Ident, stack []ast.Node) {
	if sel, ok := stack[len(stack)-1].(*ast.SelectorExpr); ok && sel.Sel == n {
		return
	}
	obj := p.pkg.Info.Uses[n]
	if obj == nil || obj.Pkg() == nil || obj.Pkg() == p.pkg.Types {
		return
	}
	path, name := constructor(obj)
	if path == "" && timerName(obj) == "" {
		return
	}
	p.expression(n).block(n.Pos(), "package "+obj.Pkg().Path()+" is imported with a dot")
	if path != "" {
		k := p.key(n.Pos(), 'e')
		if p.sites[k] == nil {
			s := &site{file: p.file, sel: &ast.SelectorExpr{X: n, Sel: n}, call: path + "." + name, node: p.expression(n)}
			p.sites[k] = s
			c := s.node.class()
			c.sites = append(c.sites, s)
		}
	}
}

func (p *program) addSite(n *ast.SelectorExpr, path, name string, stack []ast.Node) {
	k := p.key(n.Pos(), 'e')
	if p.sites[k] != nil {
		return
	}
	s := &site{file: p.file, sel: n, call: path + "." + name, node: p.expression(n), use: p.use(n, path, stack)}
	p.sites[k] = s
	c := s.node.class()
	c.sites = append(c.sites, s)
	if (name == "NewTimer" || name == "NewTicker") && !c.news.IsValid() && !p.read(stack) {
		c.news = n.Pos()
	}
	if constructors[path][name] == "" {
		s.stays = staysTime(name, s.use)
	}
	switch {
	case p.file.fixed != "":
		s.node.block(n.Pos(), p.file.fixed)
	case p.file.leak.IsValid():
		s.node.block(p.file.leak, "the file looks for goroutines that were left behind, and waits for them on package time")
	}
}

// staysTime says why a call of time.After or time.Tick is left.
func staysTime(name string, u Use) string {
	if name == "Tick" {
		return "package timer's Tick is time's: nobody can stop it"
	}
	if u == Loop {
		return "package timer's After is time's: nobody can stop it; in this loop a NewTimer that is stopped or reset costs less"
	}
	return "package timer's After is time's: nobody can stop it"
}

// called reports whether the function that n names is called, and not a value.
func (p *program) called(n *ast.SelectorExpr, stack []ast.Node) bool {
	call, ok := stack[len(stack)-1].(*ast.CallExpr)
	return ok && call.Fun == n
}

// read reports whether the timer that a call makes is waited for where it is made,
// so that it fires before anything goes on: <-time.NewTimer(d).C as a statement.
func (p *program) read(stack []ast.Node) bool {
	if len(stack) < 5 {
		return false
	}
	at := len(stack) - 1
	_, call := stack[at].(*ast.CallExpr)
	_, field := stack[at-1].(*ast.SelectorExpr)
	recv, ok := stack[at-2].(*ast.UnaryExpr)
	if !call || !field || !ok || recv.Op != token.ARROW {
		return false
	}
	if _, comm := stack[at-4].(*ast.CommClause); comm {
		return false
	}
	_, stmt := stack[at-3].(*ast.ExprStmt)
	return stmt
}

// isInternal reports whether only packages of the same module can import path.
func isInternal(path string) bool {
	return path == "internal" || strings.HasPrefix(path, "internal/") ||
		strings.Contains(path, "/internal/") || strings.HasSuffix(path, "/internal")
}
