package migrate

import (
	"go/ast"
	"go/types"
	"strings"
)

// site is what the analysis knows about a Site.
type site struct {
	file       *file
	sel        *ast.SelectorExpr
	funcName   string // for example time.NewTimer
	class      *class
	stayReason string // why such a call is never rewritten, or empty
	use        Use
	muted      bool // the call is in a test, and Options.Tests is false
	skipped    bool // no call of the class is worth it, and Options.All is false
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

// timerTypeName returns "Timer" for time.Timer and its tagged variants, "Ticker" for
// time.Ticker, and "" for any other type, including pointers to these.
func timerTypeName(t types.Type) string {
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return timerObjectName(named.Obj())
	}
	return ""
}

func timerObjectName(obj types.Object) string {
	if _, ok := obj.(*types.TypeName); !ok || obj.Pkg() == nil || obj.Pkg().Path() != "time" && !strings.HasPrefix(obj.Pkg().Path(), tagPrefix) {
		return ""
	}
	if obj.Name() == "Timer" || obj.Name() == "Ticker" {
		return obj.Name()
	}
	return ""
}

// visitSelector finds call sites and timer types.
func (p *program) visitSelector(n *ast.SelectorExpr, stack []ast.Node) {
	obj := p.pkg.Info.Uses[n.Sel]
	if path, name := constructorName(obj); path != "" {
		p.addSite(n, path, name, stack)
	} else if obj != nil && timerObjectName(obj) != "" {
		c := p.newClass()
		c.atoms = append(c.atoms, atom{p.file, n.X.(*ast.Ident)})
		if p.file.refusal != "" {
			c.addBlocker(n.Pos(), p.file.refusal)
		}
		switch parent := stack[len(stack)-1].(type) {
		case *ast.StarExpr, *ast.IndexListExpr: // a pointer, or a type argument
		default:
			if index, ok := parent.(*ast.IndexExpr); !ok || index.Index != n {
				c.addBlocker(n.Pos(), "a time."+n.Sel.Name+" by value: a timer."+n.Sel.Name+" must not be copied")
			}
		}
	}
}

func (p *program) addSite(n *ast.SelectorExpr, path, name string, stack []ast.Node) {
	s := &site{file: p.file, sel: n, funcName: path + "." + name, class: p.newClass(), use: p.guessUse(n, path, stack)}
	s.class.sites = append(s.class.sites, s)
	p.sites = append(p.sites, s)
	switch name {
	case "NewTimer", "NewTicker":
		p.newCalls = append(p.newCalls, s)
		s.class.newCallPos = n.Pos()
		fallthrough
	case "AfterFunc":
		s.class.atoms = append(s.class.atoms, atom{p.file, n.X.(*ast.Ident)})
	default:
		s.stayReason = stayReasons[name]
	}
	switch {
	case p.file.refusal != "":
		s.class.addBlocker(n.Pos(), p.file.refusal)
	case p.file.leakCheckPos.IsValid():
		s.class.addBlocker(p.file.leakCheckPos, "the file counts goroutines and may wait for them with package time")
	}
}

// stayReasons says why calls of functions that have no replacement stay.
var stayReasons = map[string]string{
	"After": "timer.After is time.After, which cannot be stopped",
	"Tick":  "timer.Tick is time.Tick, which cannot be stopped",
}

// isCalled reports whether n is the function of a call.
func isCalled(n *ast.SelectorExpr, stack []ast.Node) bool {
	call, ok := stack[len(stack)-1].(*ast.CallExpr)
	return ok && call.Fun == n
}
