package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
)

// visitLenCall handles a call of len or cap. For a timer's channel the result changes: in
// package timer the channel has a buffer.
func (p *program) visitLenCall(n *ast.CallExpr, name string) {
	arg := ast.Unparen(n.Args[0])
	if sel, ok := arg.(*ast.SelectorExpr); ok && p.isTimerChannel(sel) {
		p.timerOfChannel(sel).addBlocker(n.Pos(), name+" of its channel is always 0 in package time, but not in package timer")
		return
	}
	if t := p.typeOf(arg); t != nil && mayBeTimerChannel(t) {
		p.lenCallPositions = append(p.lenCallPositions, n.Pos())
	}
}

// mayBeTimerChannel reports whether t may be the type of a timer's channel. A type
// parameter may be if its constraint allows it.
func mayBeTimerChannel(t types.Type) bool {
	if tp, ok := types.Unalias(t).(*types.TypeParam); ok {
		found := false
		iface, _ := tp.Constraint().Underlying().(*types.Interface)
		for e := range iface.EmbeddedTypes() {
			found = found || termMayBeTimerChannel(e)
		}
		return found
	}
	ch, ok := t.Underlying().(*types.Chan)
	if !ok || ch.Dir() == types.SendOnly {
		return false
	}
	switch elem := types.Unalias(ch.Elem()).(type) {
	case *types.TypeParam:
		return true
	case *types.Named:
		return elem.Obj().Name() == "Time" && elem.Obj().Pkg() != nil && elem.Obj().Pkg().Path() == "time"
	}
	return false
}

// termMayBeTimerChannel is mayBeTimerChannel for an element of a constraint.
func termMayBeTimerChannel(t types.Type) bool {
	switch u := types.Unalias(t).(type) {
	case *types.Union:
		for term := range u.Terms() {
			if termMayBeTimerChannel(term.Type()) {
				return true
			}
		}
		return false
	case *types.Named:
		if iface, ok := u.Underlying().(*types.Interface); ok {
			for e := range iface.EmbeddedTypes() {
				if termMayBeTimerChannel(e) {
					return true
				}
			}
			return false
		}
	}
	return mayBeTimerChannel(t)
}

// isTimerChannel reports whether a selector is a timer's field C.
func (p *program) isTimerChannel(n *ast.SelectorExpr) bool {
	sel := p.pkg.Info.Selections[n]
	return sel != nil && sel.Kind() == types.FieldVal && sel.Obj().Name() == "C" &&
		sel.Obj().Pkg() != nil && sel.Obj().Pkg().Path() == "time"
}

// timerOfChannel returns the node of the timer whose field C is selected, or nil.
func (p *program) timerOfChannel(n *ast.SelectorExpr) *node {
	return p.timerOfSelection(n, p.pkg.Info.Selections[n])
}

// visitTimerChannel records timers whose channel is stored or passed on.
func (p *program) visitTimerChannel(n *ast.SelectorExpr, stack []ast.Node) {
	if !p.isTimerChannel(n) {
		return
	}
	var child ast.Node = n
	at := len(stack) - 1
	for ; at > 0; at-- {
		paren, ok := stack[at].(*ast.ParenExpr)
		if !ok {
			break
		}
		child = paren
	}
	switch parent := stack[at].(type) {
	case *ast.UnaryExpr:
		if parent.Op == token.ARROW {
			return
		}
	case *ast.BinaryExpr: // == or !=
		return
	case *ast.RangeStmt:
		if parent.X == child {
			return
		}
	case *ast.AssignStmt:
		for _, l := range parent.Lhs {
			if l == child {
				return
			}
		}
	case *ast.CallExpr:
		if name := builtinName(p.pkg.Info, parent); name == "len" || name == "cap" {
			return
		}
	}
	if m := p.timerOfChannel(n); m != nil {
		p.storedChannels = append(p.storedChannels, m)
	}
}

// blockStoredChannels prevents the rewrite of timers whose channel is stored or passed
// on, if the program calls len or cap on a channel that may be a timer's.
func (p *program) blockStoredChannels() {
	if len(p.lenCallPositions) == 0 {
		return
	}
	for _, n := range p.storedChannels {
		n.addBlocker(p.lenCallPositions[0], "len or cap of a channel that may be its own: always 0 in package time, but not in package timer")
	}
}
