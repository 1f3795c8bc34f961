package migrate

import (
	"go/ast"
	"go/types"
)

// Use is a guess at what the timers of a call site belong to. It tells whether very many
// may be pending at a time.
type Use uint8

// The values of Use say what each timer belongs to.
const (
	Call       Use = iota // a call of a function; how many run at a time is unknown
	Keyed                 // an entry of a map
	Connection            // a network connection
	Request               // a request
	Loop                  // a round of a loop
	Object                // a value of a struct type
	Once                  // the program: the call runs only once
	Sleeping              // a goroutine that sleeps
	Testing               // a test
)

var useTexts = [...]string{
	Call:       "each call",
	Keyed:      "each key",
	Connection: "each connection",
	Request:    "each request",
	Loop:       "each round of a loop",
	Object:     "each object",
	Once:       "once",
	Sleeping:   "a goroutine that sleeps",
	Testing:    "a test",
}

func (u Use) String() string { return useTexts[u] }

// MarshalText encodes a Use as its String, for JSON.
func (u Use) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// Worth reports whether very many timers of the call site may be pending at a time. Where
// few are, a rewrite gains nothing.
func (u Use) Worth() bool { return u >= Keyed && u <= Object }

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
	storedUse, owner := p.whereStored(stack)
	if storedUse == Keyed || owner != nil && p.isMapValue(owner) {
		return Keyed
	}
	request, conn, once := p.enclosingFuncs(stack)
	switch {
	case conn || owner != nil && isConnType(owner):
		return Connection
	case request:
		return Request
	case isInLoop(stack):
		return Loop
	case owner != nil:
		return Object
	case once:
		return Once
	}
	return Call
}

// whereStored looks where the result of a call is stored. In an entry of a map, u is
// Keyed. In a field of a struct, owner is the struct's type.
func (p *program) whereStored(stack []ast.Node) (u Use, owner types.Type) {
	for i := len(stack) - 1; i > 0; i-- {
		switch s := stack[i].(type) {
		case *ast.CallExpr, *ast.SelectorExpr, *ast.ParenExpr, *ast.UnaryExpr:
			continue
		case *ast.AssignStmt:
			for _, l := range s.Lhs {
				switch l := l.(type) {
				case *ast.IndexExpr:
					if t := p.typeOf(l.X); t != nil {
						if _, ok := t.Underlying().(*types.Map); ok {
							return Keyed, nil
						}
					}
				case *ast.SelectorExpr:
					if t := p.typeOf(l.X); t != nil && p.pkg.Info.Selections[l] != nil {
						return Call, deref(t)
					}
				}
			}
			return Call, nil
		case *ast.KeyValueExpr:
			if lit, ok := stack[i-1].(*ast.CompositeLit); ok {
				t := p.typeOf(lit)
				if t == nil {
					return Call, nil
				}
				if _, ok := t.Underlying().(*types.Map); ok {
					return Keyed, nil
				}
				return Call, deref(t)
			}
		}
		break
	}
	return Call, nil
}

// isMapValue reports whether a variable or field of the package is a map with values of
// type t or *t.
func (p *program) isMapValue(t types.Type) bool {
	scope := p.pkg.Types.Scope()
	for _, name := range scope.Names() {
		underlying := scope.Lookup(name).Type().Underlying()
		if s, ok := underlying.(*types.Struct); ok {
			for f := range s.Fields() {
				if isMapWithElem(f.Type(), t) {
					return true
				}
			}
		} else if isMapWithElem(underlying, t) {
			return true
		}
	}
	return false
}

func isMapWithElem(m, elem types.Type) bool {
	mt, ok := m.Underlying().(*types.Map)
	return ok && types.Identical(deref(mt.Elem()), elem)
}

// enclosingFuncs describes the functions around a call:
//
//   - request: a function has a request as a parameter
//   - conn: a function has a connection as a parameter or receiver
//   - once: the outermost function is main or init, or the call is outside functions
func (p *program) enclosingFuncs(stack []ast.Node) (request, conn, once bool) {
	inFunction := false
	for _, n := range stack {
		var t *ast.FuncType
		switch n := n.(type) {
		case *ast.FuncDecl:
			t = n.Type
			if n.Recv != nil && len(n.Recv.List) > 0 {
				conn = conn || isConnType(deref(p.typeOf(n.Recv.List[0].Type)))
			}
			once = n.Recv == nil && (n.Name.Name == "init" || n.Name.Name == "main" && p.pkg.Types.Name() == "main")
		case *ast.FuncLit:
			t = n.Type
		default:
			continue
		}
		inFunction = true
		for _, field := range t.Params.List {
			pt := p.typeOf(field.Type)
			if pt == nil {
				continue
			}
			request = request || isRequestType(pt)
			conn = conn || isConnType(deref(pt))
		}
	}
	return request, conn, once || !inFunction
}

// isRequestType reports whether functions with a parameter of type t handle requests.
func isRequestType(t types.Type) bool {
	named, ok := types.Unalias(deref(t)).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return false
	}
	switch named.Obj().Pkg().Path() {
	case "net/http":
		return named.Obj().Name() == "Request" || named.Obj().Name() == "ResponseWriter"
	case "google.golang.org/grpc":
		return named.Obj().Name() == "UnaryServerInfo" || named.Obj().Name() == "ServerStream"
	}
	return false
}

// isConnType reports whether a value of type t is a connection or contains one.
func isConnType(t types.Type) bool {
	if isNetConnType(t) {
		return true
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		if isNetConnType(deref(f.Type())) {
			return true
		}
	}
	return false
}

func isNetConnType(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return false
	}
	switch named.Obj().Pkg().Path() {
	case "net":
		switch named.Obj().Name() {
		case "Conn", "TCPConn", "UDPConn", "UnixConn", "PacketConn":
			return true
		}
	case "crypto/tls":
		return named.Obj().Name() == "Conn"
	}
	return false
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
