package migrate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/types"
	"maps"
	"os"
	"path"
	"slices"
)

// rewrite makes the edits of a file: the replacements, and one for its imports.
func (p *program) rewrite(f *file) File {
	out := File{Name: f.name}
	names := make(map[string]string) // of the packages, by path
	var add []newImport
	for _, to := range []string{DeadlinePath, TimerPath} {
		if !f.needs(to) {
			continue
		}
		name, imported := p.nameIn(f, to, names)
		names[to] = name
		if !imported {
			add = append(add, newImport{to, name})
		}
	}
	for _, offset := range slices.Sorted(maps.Keys(f.cuts)) {
		c := f.cuts[offset]
		out.Edits = append(out.Edits, Edit{Start: offset, End: offset + c.width, New: names[c.to]})
	}
	gone := p.unused(f)
	if len(add) == 0 && len(gone) == 0 {
		return out
	}
	src, err := p.readFile(f.name)
	if err != nil {
		return File{Name: f.name} // nothing is changed by halves
	}
	e, err := editImports(src, gone, add)
	if err != nil {
		return File{Name: f.name}
	}
	out.Edits = slices.Insert(out.Edits, 0, e)
	return out
}

// needs reports whether a name in the file becomes that of the package of that path.
func (f *file) needs(path string) bool {
	for _, c := range f.cuts {
		if c.to == path {
			return true
		}
	}
	return false
}

// unused returns the indexes of the file's imports that nothing needs any more.
func (p *program) unused(f *file) []int {
	info := f.in[0].Info
	all, cut := make(map[types.Object]int), make(map[types.Object]int)
	ast.Inspect(f.ast, func(x ast.Node) bool {
		id, ok := x.(*ast.Ident)
		if !ok {
			return true
		}
		if pn, ok := info.Uses[id].(*types.PkgName); ok {
			all[pn]++
			if _, ok := f.cuts[p.position(id.Pos()).Offset]; ok {
				cut[pn]++
			}
		}
		return true
	})
	var gone []int
	for i, spec := range f.ast.Imports {
		if pn := info.PkgNameOf(spec); pn != nil && cut[pn] > 0 && cut[pn] == all[pn] {
			gone = append(gone, i)
		}
	}
	return gone
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

// nameIn returns the name by which the package of that path is known in a file, or is to
// be, and whether the file imports it already. An import that is shadowed somewhere in the
// file does not count: it is imported a second time, by another name. given are the names
// of others that the file will import.
func (p *program) nameIn(f *file, to string, given map[string]string) (name string, imported bool) {
	for _, spec := range f.ast.Imports {
		if importPath(spec) != to {
			continue
		}
		name = path.Base(to)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name != "_" && name != "." && !declares(f, name) {
			return name, true
		}
	}
	for i := 0; ; i++ {
		switch i {
		case 0:
			name = path.Base(to)
		case 1:
			name = "tickless"
		default:
			name = fmt.Sprint("tickless", i)
		}
		if !p.taken(f, name) && !slices.Contains(slices.Collect(maps.Values(given)), name) {
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
	for _, spec := range f.ast.Imports {
		if pn := f.in[0].Info.PkgNameOf(spec); pn != nil && pn.Name() == name {
			return true
		}
	}
	return declares(f, name)
}

// declares reports whether the name is declared somewhere in the file, other than by
// an import, a field or a method.
func declares(f *file, name string) bool {
	info := f.in[0].Info
	found := false
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if obj := info.Defs[n]; obj != nil && n.Name == name && !isMember(obj) {
				_, imported := obj.(*types.PkgName)
				found = found || !imported
			}
		case *ast.TypeSwitchStmt:
			// Info.Defs does not have its variable's type.
			if a, ok := n.Assign.(*ast.AssignStmt); ok && a.Lhs[0].(*ast.Ident).Name == name {
				found = true
			}
		}
		return !found
	})
	return found
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

// Apply returns the file's new contents, given those that it had when it was
// analyzed. If they were as gofmt has them, but for the line endings, the new ones
// are. Line endings stay what they were.
func (f File) Apply(src []byte) ([]byte, error) {
	at := 0
	for _, e := range f.Edits {
		if e.Start < at || e.End < e.Start || e.End > len(src) {
			return nil, fmt.Errorf("migrate: %s has changed since it was analyzed", f.Name)
		}
		at = e.End
	}
	out := apply(src, f.Edits)
	plain, crlf := unixLines(src)
	if formatted, err := format.Source(plain); err != nil || !bytes.Equal(formatted, plain) {
		return out, nil
	}
	if crlf {
		out = bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n"))
	}
	out, err := format.Source(out)
	if crlf {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	return out, err
}

// apply carries out edits that are in order and do not overlap.
func apply(src []byte, edits []Edit) []byte {
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, src[at:e.Start]...), e.New...)
		at = e.End
	}
	return append(out, src[at:]...)
}

// unixLines returns a text whose lines all end in CR and LF with lines that end in LF,
// and whether it was such a text.
func unixLines(src []byte) ([]byte, bool) {
	n := bytes.Count(src, []byte("\r\n"))
	if n == 0 || n != bytes.Count(src, []byte("\n")) {
		return src, false
	}
	return bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")), true
}
