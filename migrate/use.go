package migrate

import (
	"go/ast"
	"go/types"
	"slices"
)

// Use is a guess at what the timers of a call site belong to. It tells whether very many
// may be pending at a time.
type Use uint8

// The values of Use say what each timer belongs to.
const (
	Call     Use = iota // a call of a function; how many run at a time is unknown
	Request             // a request or a connection
	Loop                // a round of a loop
	Object              // a value of a struct type, or an entry of a map
	Once                // the program: the call runs only once
	Sleeping            // a goroutine that sleeps
	Testing             // a test
)

var useTexts = [...]string{
	Call:     "each call",
	Request:  "each request or connection",
	Loop:     "each round of a loop",
	Object:   "each object",
	Once:     "once",
	Sleeping: "a goroutine that sleeps",
	Testing:  "a test",
}

func (u Use) String() string { return useTexts[u] }

// MarshalText encodes a Use as its String, for JSON.
func (u Use) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// Worth reports whether very many timers of the call site may be pending at a time. Where
// few are, a rewrite gains nothing.
func (u Use) Worth() bool { return u >= Request && u <= Object }

// guessUse guesses what the timers of a call site are for.
func (p *program) guessUse(n *ast.SelectorExpr, path string, stack []ast.Node) Use {
	switch {
	case p.file.isTest:
		return Testing
	case path == "time" && n.Sel.Name == "Sleep":
		return Sleeping
	}
	if !isCalled(n, stack) {
		return Call // a hook, or an argument
	}
	request, once := p.enclosingFuncs(stack)
	switch {
	case request:
		return Request
	case isInLoop(stack):
		return Loop
	case p.isStored(stack):
		return Object
	case once:
		return Once
	}
	return Call
}

// isStored reports whether the result of a call becomes a field or an element.
func (p *program) isStored(stack []ast.Node) bool {
	for _, n := range slices.Backward(stack) {
		switch n := n.(type) {
		case *ast.CallExpr, *ast.SelectorExpr, *ast.ParenExpr, *ast.UnaryExpr:
			continue
		case *ast.AssignStmt:
			return slices.ContainsFunc(n.Lhs, func(l ast.Expr) bool {
				_, isElement := l.(*ast.IndexExpr)
				sel, ok := l.(*ast.SelectorExpr)
				return isElement || ok && p.pkg.Info.Selections[sel] != nil
			})
		case *ast.KeyValueExpr:
			return true
		}
		return false
	}
	return false
}

// enclosingFuncs describes the functions around a call:
//
//   - request: a function has a request or a connection as a parameter
//   - once: the outermost function is main or init, or the call is outside functions
func (p *program) enclosingFuncs(stack []ast.Node) (request, once bool) {
	inFunction := false
	for _, n := range stack {
		var t *ast.FuncType
		switch n := n.(type) {
		case *ast.FuncDecl:
			t = n.Type
			once = n.Recv == nil && (n.Name.Name == "init" || n.Name.Name == "main" && p.pkg.Types.Name() == "main")
		case *ast.FuncLit:
			t = n.Type
		default:
			continue
		}
		inFunction = true
		for _, field := range t.Params.List {
			request = request || requestTypes[types.TypeString(deref(p.pkg.Info.TypeOf(field.Type)), nil)]
		}
	}
	return request, once || !inFunction
}

// requestTypes are the types whose values a function gets once for each request or
// connection.
var requestTypes = map[string]bool{
	"net/http.Request": true, "net/http.ResponseWriter": true, "google.golang.org/grpc.ServerStream": true,
	"net.Conn": true, "net.TCPConn": true, "net.UDPConn": true, "net.UnixConn": true, "net.PacketConn": true, "crypto/tls.Conn": true,
}

// isInLoop reports whether the call is in a loop, or in a function literal in a loop.
func isInLoop(stack []ast.Node) bool {
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.ForStmt:
			if i+1 < len(stack) && stack[i+1] == n.Init {
				continue
			}
			return true
		case *ast.RangeStmt:
			if i+1 < len(stack) && stack[i+1] == n.X {
				continue
			}
			return true
		case *ast.FuncDecl:
			return false
		case *ast.FuncLit:
			// A loop around the function literal may call it in each iteration.
			continue
		}
	}
	return false
}
