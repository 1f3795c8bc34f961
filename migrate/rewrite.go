package migrate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// rewrite makes the edits of a file: the replacements, and one for its imports.
func (p *program) rewrite(f *file) File {
	name, imported := p.nameIn(f)
	out := File{Name: f.name}
	if name != "timer" {
		out.Alias = name
	}
	cut := make(map[string]int)
	for _, offset := range slices.Sorted(maps.Keys(f.cuts)) {
		c := f.cuts[offset]
		cut[c.path]++
		out.Edits = append(out.Edits, Edit{Start: offset, End: offset + c.width, New: name + c.after})
	}
	alias := ""
	if name != "timer" {
		alias = name
	}
	var gone []*ast.ImportSpec
	for path, n := range cut {
		for _, spec := range f.ast.Imports {
			if spec.Path.Value == `"`+path+`"` && p.uses(f, path) == n {
				gone = append(gone, spec)
			}
		}
	}
	if imported && len(gone) == 0 {
		return out
	}
	start, end := p.importRegion(f)
	src, err := p.readFile(f.name)
	if err == nil {
		var text string
		if text, err = editImports(src[start:end], alias, imported, gone); err == nil {
			out.Edits = slices.Insert(out.Edits, 0, Edit{Start: start, End: end, New: text})
		}
	}
	if err != nil {
		out.Edits = nil // nothing is changed by halves
	}
	return out
}

func (p *program) readFile(name string) ([]byte, error) {
	if p.opts.ReadFile != nil {
		// An analyzer's driver gives only the files of the package and those that the
		// build leaves out, not the tests.
		if src, err := p.opts.ReadFile(name); err == nil {
			return src, nil
		}
	}
	return os.ReadFile(name)
}

// nameIn returns the name by which package timer is known in a file, or is to be,
// and whether the file imports it already.
func (p *program) nameIn(f *file) (name string, imported bool) {
	for _, spec := range f.ast.Imports {
		if spec.Path.Value != `"`+TimerPath+`"` {
			continue
		}
		switch {
		case spec.Name == nil:
			return "timer", true
		case spec.Name.Name != "_" && spec.Name.Name != ".":
			return spec.Name.Name, true
		}
	}
	for i := 0; ; i++ {
		switch i {
		case 0:
			name = "timer"
		case 1:
			name = "tickless"
		default:
			name = fmt.Sprint("tickless", i)
		}
		if !p.taken(f, name) {
			return name, false
		}
	}
}

// taken reports whether the name means something in the file, or in the file's
// package, or is declared somewhere in the file: an import of that name would not
// compile, or be shadowed there. What the build leaves out is of the package too.
func (p *program) taken(f *file, name string) bool {
	for _, pkg := range f.in {
		if pkg.Types.Scope().Lookup(name) != nil || p.declaresUnseen(pkg, name) {
			return true
		}
	}
	info := f.in[0].Info
	taken := false
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.Name != name {
				return true
			}
			if obj := info.Defs[n]; obj != nil {
				taken = taken || !isMember(obj)
			}
			if pn, ok := info.Uses[n].(*types.PkgName); ok && pn.Name() == name {
				taken = true
			}
		case *ast.TypeSwitchStmt:
			// Its variable is in neither.
			if a, ok := n.Assign.(*ast.AssignStmt); ok && a.Lhs[0].(*ast.Ident).Name == name {
				taken = true
			}
		case *ast.ImportSpec:
			if pn := info.PkgNameOf(n); pn != nil && pn.Name() == name {
				taken = true
			}
		}
		return !taken
	})
	return taken
}

// isMember reports whether the object is a field or a method, whose name can only
// follow a dot.
func isMember(obj types.Object) bool {
	switch obj := obj.(type) {
	case *types.Var:
		return obj.IsField()
	case *types.Func:
		return obj.Signature().Recv() != nil
	}
	return false
}

// uses counts how often a file names the package of a path.
func (p *program) uses(f *file, path string) int {
	n := 0
	ast.Inspect(f.ast, func(x ast.Node) bool {
		if id, ok := x.(*ast.Ident); ok {
			if pn, ok := f.in[0].Info.Uses[id].(*types.PkgName); ok && pn.Imported().Path() == path {
				n++
			}
		}
		return true
	})
	return n
}

// importRegion returns where a file's import declarations are.
func (p *program) importRegion(f *file) (start, end int) {
	for _, d := range f.ast.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			break
		}
		if end == 0 {
			start = p.position(g.Pos()).Offset
		}
		end = p.position(g.End()).Offset
	}
	return start, end
}

// editImports adds package timer to import declarations, unless it is there, and
// takes out what is not used any more.
func editImports(src []byte, alias string, imported bool, gone []*ast.ImportSpec) (string, error) {
	const header = "package p\n\n"
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", header+string(src), parser.ParseComments|parser.ImportsOnly)
	if err != nil {
		return "", err
	}
	for _, spec := range gone {
		name := ""
		if spec.Name != nil {
			name = spec.Name.Name
		}
		astutil.DeleteNamedImport(fset, f, name, importPath(spec))
	}
	grouped := slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return !isStandard(importPath(s)) })
	if !imported && grouped {
		astutil.AddNamedImport(fset, f, alias, TimerPath)
	}
	var out bytes.Buffer
	if err := format.Node(&out, fset, f); err != nil {
		return "", err
	}
	text := strings.TrimSpace(strings.TrimPrefix(out.String(), "package p"))
	if !imported && !grouped {
		text = addGroup(text, len(f.Decls), strings.TrimSpace(alias+` "`+TimerPath+`"`))
	}
	return text, nil
}

// addGroup adds an import, which is not the standard library's, to declarations
// that have only such.
func addGroup(text string, decls int, spec string) string {
	switch {
	case decls == 0:
		return "import " + spec
	case strings.HasSuffix(text, "\n)"):
		return strings.TrimSuffix(text, ")") + "\n\t" + spec + "\n)"
	case decls == 1 && strings.HasPrefix(text, "import ") && !strings.Contains(text, "\n"):
		return "import (\n\t" + strings.TrimPrefix(text, "import ") + "\n\n\t" + spec + "\n)"
	}
	return text + "\nimport " + spec
}

func importPath(s *ast.ImportSpec) string { return strings.Trim(s.Path.Value, "\"`") }

// isStandard reports whether an import path is one of the standard library's.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// Apply returns the file's new contents, given those that it had when it was
// analyzed. If they were as gofmt has them, the new ones are.
func (f File) Apply(src []byte) ([]byte, error) {
	var out bytes.Buffer
	at := 0
	for _, e := range f.Edits {
		if e.Start < at || e.End < e.Start || e.End > len(src) {
			return nil, fmt.Errorf("migrate: %s has changed since it was analyzed", f.Name)
		}
		out.Write(src[at:e.Start])
		out.WriteString(e.New)
		at = e.End
	}
	out.Write(src[at:])
	if formatted, err := format.Source(src); err != nil || !bytes.Equal(formatted, src) {
		return out.Bytes(), nil
	}
	return format.Source(out.Bytes())
}
