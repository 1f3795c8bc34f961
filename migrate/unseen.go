package migrate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// blockUnseen prevents the rewrite of a variable, field or function if its name occurs in
// an unseen file, such as a file for another system. Unseen files have no type information.
func (p *program) blockUnseen() {
	used := make(map[visibleName]token.Pos) // exported names with and without their package path
	visitFile := func(file, path string) {
		f := p.parseUnseen(file)
		if f == nil || p.opts.unseenImporters && strings.HasSuffix(file, "_test.go") && !importsPath(f, "time") {
			return // a test that does not import time works with either type
		}
		addUsed := func(id *ast.Ident, member bool) {
			used[visibleName{path, id.Name, member}] = id.Pos()
			if id.IsExported() {
				used[visibleName{"", id.Name, member}] = id.Pos()
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if setsByPosition(n) {
					p.eachField(n.Type, func(field string) { addUsed(&ast.Ident{NamePos: n.Pos(), Name: field}, true) })
				}
			case *ast.KeyValueExpr:
				if id, ok := n.Key.(*ast.Ident); ok {
					addUsed(id, true)
				}
			case *ast.FuncDecl:
				addUsed(n.Name, n.Recv != nil)
			case *ast.InterfaceType:
				for _, field := range n.Methods.List {
					for _, id := range field.Names {
						addUsed(id, true)
					}
				}
			case *ast.SelectorExpr:
				addUsed(n.Sel, true)
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && (n.Sel.Name == "Timer" || n.Sel.Name == "Ticker") {
					return false // a field of that name may be embedded elsewhere
				}
			case *ast.Ident:
				addUsed(n, false)
			}
			return true
		})
	}
	for _, pkg := range p.pkgs {
		for _, file := range pkg.Unseen {
			visitFile(file, pkg.Path)
		}
	}
	for _, file := range p.opts.Unseen {
		visitFile(file, "")
	}
	if len(used) == 0 {
		return
	}
	for _, n := range p.nodes {
		if n.parent != nil {
			continue
		}
		for _, visible := range n.names {
			pos, ok := used[visible]
			if !ok {
				pos, ok = used[visibleName{"", visible.name, visible.isMember}]
			}
			if ok {
				n.block(pos, visible.name+" may be used there, in a file that the analysis does not see")
			}
		}
	}
}

// parseUnseen parses a file. It returns nil if the file has a syntax error.
func (p *program) parseUnseen(name string) *ast.File {
	if f, ok := p.unseen[name]; ok {
		return f
	}
	var f *ast.File
	if src, err := p.readFile(name); err == nil {
		if f, err = parser.ParseFile(p.fset, name, src, parser.SkipObjectResolution); err != nil {
			f = nil
		}
	}
	p.unseen[name] = f
	return f
}

// declaresUnseen reports whether an unseen file of the package declares the name at package
// level.
func (p *program) declaresUnseen(pkg *Package, name string) bool {
	for _, file := range pkg.Unseen {
		f := p.parseUnseen(file)
		if f == nil || f.Name.Name != pkg.Types.Name() {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == name {
					return true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.Name == name {
							return true
						}
					case *ast.ValueSpec:
						if slices.ContainsFunc(spec.Names, func(id *ast.Ident) bool { return id.Name == name }) {
							return true
						}
					}
				}
			}
		}
	}
	return false
}

// setsByPosition reports whether a composite literal, or a literal inside it, may set
// fields without naming them, as in T{1, 2}.
func setsByPosition(n *ast.CompositeLit) bool {
	switch n.Type.(type) {
	case nil:
		return false // the enclosing literal decides
	case *ast.ArrayType, *ast.MapType:
		return true
	}
	if len(n.Elts) == 0 {
		return false
	}
	_, keyed := n.Elts[0].(*ast.KeyValueExpr)
	return !keyed
}

// eachField calls f with each field name of the struct type te. Without type information,
// every struct type with te's last name counts.
func (p *program) eachField(te ast.Expr, f func(string)) {
	var id *ast.Ident
	ast.Inspect(te, func(n ast.Node) bool {
		if x, ok := n.(*ast.Ident); ok {
			id = x
		}
		return true
	})
	if id == nil {
		return
	}
	for _, pkg := range p.pkgs {
		obj := pkg.Types.Scope().Lookup(id.Name)
		if obj == nil {
			continue
		}
		if s, ok := obj.Type().Underlying().(*types.Struct); ok {
			for field := range s.Fields() {
				f(field.Name())
			}
		}
	}
}
