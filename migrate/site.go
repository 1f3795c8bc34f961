package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// site is what the analysis knows about a Site.
type site struct {
	file                *file
	sel                 *ast.SelectorExpr
	funcName            string // for example time.NewTimer
	node                *node
	stayReason          string // why such a call is never rewritten, or empty
	use                 Use
	viaInterface        bool      // the timer becomes an interface value, or comes from one
	blockersBeforeUnite []blocker // if viaInterface: the reasons before uniteInterfaceConversions
	muted               bool      // the call is in a test, and Options.Tests is false
}

// replacementPaths maps the path of a package to the path of its replacement.
var replacementPaths = map[string]string{"time": TimerPath, "context": DeadlinePath}

// constructors maps the functions that start timers, by package and name, to their
// replacements. An empty replacement means that the function is not replaced.
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
	if path, name := constructorName(p.pkg.Info.Uses[n.Sel]); path != "" {
		p.addSite(n, path, name, stack)
		return
	}
	if obj := p.pkg.Info.Uses[n.Sel]; obj != nil && timerObjectName(obj) != "" {
		p.addTypeUse(n)
		return
	}
	p.visitTimerChannel(n, stack)
	sel := p.pkg.Info.Selections[n]
	if sel == nil || sel.Kind() == types.FieldVal {
		return
	}
	if sel.Kind() == types.MethodExpr {
		p.nodeOf(n) // claims the type before the dot
	}
	if f, ok := sel.Obj().(*types.Func); ok && f.Name() == "Stop" && f.Pkg() != nil && f.Pkg().Path() == "time" {
		if m := p.timerOfSelection(n, sel); m != nil {
			m.representative().stopCalled = true
		}
	}
}

// timerOfSelection returns the node of the timer in a selection such as t.C or t.Stop.
// The timer is t, or a field that is embedded in t.
func (p *program) timerOfSelection(n *ast.SelectorExpr, sel *types.Selection) *node {
	indexPath := sel.Index()
	if len(indexPath) == 1 {
		if sel.Kind() == types.MethodExpr {
			return p.nodeOf(n)
		}
		return p.nodeOf(n.X)
	}
	t := sel.Recv()
	var field *types.Var
	for _, i := range indexPath[:len(indexPath)-1] {
		s, ok := deref(t).Underlying().(*types.Struct)
		if !ok {
			return nil
		}
		field = s.Field(i)
		t = field.Type()
	}
	if !hasTimer(originOf(field).Type()) {
		return nil
	}
	return p.nodeOfObject(field)
}

// constructorName returns the package path and name of obj if it is a function that starts
// timers. Else it returns empty strings.
func constructorName(obj types.Object) (path, name string) {
	f, ok := obj.(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil {
		return "", ""
	}
	if _, ok := constructors[f.Pkg().Path()][f.Name()]; !ok {
		return "", ""
	}
	return f.Pkg().Path(), f.Name()
}

// addTypeUse records a place where the source says time.Timer or time.Ticker.
func (p *program) addTypeUse(n *ast.SelectorExpr) {
	k := p.keyAt(n.Pos(), 'e')
	if p.typeUses[k] != nil {
		return
	}
	m := &typeUse{file: p.file, pkgIdent: n.X.(*ast.Ident)}
	p.typeUses[k] = m
	node := p.nodeOfExpr(n).representative()
	node.typeUses = append(node.typeUses, m)
	if p.file.refusal != "" {
		node.addBlocker(n.Pos(), p.file.refusal)
	}
}

// visitIdent finds timer types and functions that the file imports with a dot.
func (p *program) visitIdent(n *ast.Ident, stack []ast.Node) {
	if sel, ok := stack[len(stack)-1].(*ast.SelectorExpr); ok && sel.Sel == n {
		return
	}
	obj := p.pkg.Info.Uses[n]
	if obj == nil || obj.Pkg() == nil || obj.Pkg() == p.pkg.Types {
		return
	}
	path, name := constructorName(obj)
	if path == "" && timerObjectName(obj) == "" {
		return
	}
	p.nodeOfExpr(n).addBlocker(n.Pos(), "package "+obj.Pkg().Path()+" is imported with a dot")
	if path != "" {
		k := p.keyAt(n.Pos(), 'e')
		if p.sites[k] == nil {
			s := &site{file: p.file, sel: &ast.SelectorExpr{X: n, Sel: n}, funcName: path + "." + name, node: p.nodeOfExpr(n)}
			p.sites[k] = s
			c := s.node.representative()
			c.sites = append(c.sites, s)
		}
	}
}

func (p *program) addSite(n *ast.SelectorExpr, path, name string, stack []ast.Node) {
	k := p.keyAt(n.Pos(), 'e')
	if p.sites[k] != nil {
		return
	}
	s := &site{file: p.file, sel: n, funcName: path + "." + name, node: p.nodeOfExpr(n), use: p.guessUse(n, path, stack)}
	p.sites[k] = s
	c := s.node.representative()
	c.sites = append(c.sites, s)
	if (name == "NewTimer" || name == "NewTicker") && !c.newCallPos.IsValid() && !p.isAwaited(stack) {
		c.newCallPos = n.Pos()
	}
	if constructors[path][name] == "" {
		s.stayReason = reasonNotReplaced(name, s.use)
	}
	switch {
	case p.file.refusal != "":
		s.node.addBlocker(n.Pos(), p.file.refusal)
	case p.file.leakCheckPos.IsValid():
		s.node.addBlocker(p.file.leakCheckPos, "the file looks for leaked goroutines and waits for them with package time")
	}
}

// reasonNotReplaced returns why a call of time.After or time.Tick is not rewritten.
func reasonNotReplaced(name string, u Use) string {
	if name == "Tick" {
		return "timer.Tick is time.Tick, which cannot be stopped"
	}
	if u == Loop {
		return "timer.After is time.After, which cannot be stopped; in this loop a NewTimer with Stop or Reset costs less"
	}
	return "timer.After is time.After, which cannot be stopped"
}

// isCalled reports whether n is the function of a call.
func (p *program) isCalled(n *ast.SelectorExpr, stack []ast.Node) bool {
	call, ok := stack[len(stack)-1].(*ast.CallExpr)
	return ok && call.Fun == n
}

// isAwaited reports whether a timer is made and awaited in one statement, as in
// <-time.NewTimer(d).C.
func (p *program) isAwaited(stack []ast.Node) bool {
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

// isInternalPath reports whether only packages of the same module can import path.
func isInternalPath(path string) bool {
	return path == "internal" || strings.HasPrefix(path, "internal/") ||
		strings.Contains(path, "/internal/") || strings.HasSuffix(path, "/internal")
}
