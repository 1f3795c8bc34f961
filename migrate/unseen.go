package migrate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// blockUsedInUnseenFiles prevents the rewrite of a variable, field or function if its
// name occurs in an unseen file, such as a file for another system. Unseen files have no
// type information.
func (p *program) blockUsedInUnseenFiles() {
	usedNames := make(map[visibleName]token.Pos) // exported names with and without their package path
	visitFile := func(file, path string) {
		f := p.parseUnseenFile(file)
		if f == nil || p.opts.unseenImporters && strings.HasSuffix(file, "_test.go") && !importsPath(f, "time") {
			return // a test that does not import time works with either type
		}
		addUsedName := func(id *ast.Ident, member bool) {
			usedNames[visibleName{path, id.Name, member}] = id.Pos()
			if id.IsExported() {
				usedNames[visibleName{"", id.Name, member}] = id.Pos()
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if setsFieldsByPosition(n) {
					p.forEachFieldName(n.Type, func(field string) { addUsedName(&ast.Ident{NamePos: n.Pos(), Name: field}, true) })
				}
			case *ast.KeyValueExpr:
				if id, ok := n.Key.(*ast.Ident); ok {
					addUsedName(id, true)
				}
			case *ast.FuncDecl:
				addUsedName(n.Name, n.Recv != nil)
			case *ast.InterfaceType:
				for _, field := range n.Methods.List {
					for _, id := range field.Names {
						addUsedName(id, true)
					}
				}
			case *ast.SelectorExpr:
				addUsedName(n.Sel, true)
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && (n.Sel.Name == "Timer" || n.Sel.Name == "Ticker") {
					return false // a field of that name may be embedded elsewhere
				}
			case *ast.Ident:
				addUsedName(n, false)
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
	if len(usedNames) == 0 {
		return
	}
	for _, n := range p.nodes {
		if n.parent != nil {
			continue
		}
		for _, visible := range n.visibleNames {
			pos, ok := usedNames[visible]
			if !ok {
				pos, ok = usedNames[visibleName{"", visible.name, visible.isMember}]
			}
			if ok {
				n.addBlocker(pos, visible.name+" may be used there, in a file that the analysis does not see")
			}
		}
	}
}

// parseUnseenFile parses a file. It returns nil if the file has a syntax error.
func (p *program) parseUnseenFile(name string) *ast.File {
	if f, ok := p.unseenFiles[name]; ok {
		return f
	}
	var f *ast.File
	if src, err := p.readFile(name); err == nil {
		if f, err = parser.ParseFile(p.fset, name, src, parser.SkipObjectResolution); err != nil {
			f = nil
		}
	}
	p.unseenFiles[name] = f
	return f
}

// unseenFileDeclares reports whether an unseen file of the package declares the name at
// package level.
func (p *program) unseenFileDeclares(pkg *Package, name string) bool {
	for _, file := range pkg.Unseen {
		f := p.parseUnseenFile(file)
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

// setsFieldsByPosition reports whether a composite literal, or a literal inside it, may set
// fields without naming them, as in T{1, 2}.
func setsFieldsByPosition(n *ast.CompositeLit) bool {
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

// forEachFieldName calls f with each field name of the struct type te. Without type
// information, every struct type with te's last name counts.
func (p *program) forEachFieldName(te ast.Expr, f func(string)) {
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
