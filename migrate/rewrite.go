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

// rewrite returns the edits of a file: the replacements, and one for its imports.
func (p *program) rewrite(f *file) File {
	edited := File{Name: f.name}
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
	for _, offset := range slices.Sorted(maps.Keys(f.replacements)) {
		c := f.replacements[offset]
		edited.Edits = append(edited.Edits, Edit{Start: offset, End: offset + c.width, New: names[c.to]})
	}
	gone := p.unused(f)
	if len(add) == 0 && len(gone) == 0 {
		return edited
	}
	src, err := p.readFile(f.name)
	if err != nil {
		return File{Name: f.name} // nothing is changed by halves
	}
	e, err := editImports(src, gone, add)
	if err != nil {
		return File{Name: f.name}
	}
	edited.Edits = slices.Insert(edited.Edits, 0, e)
	return edited
}

// needs reports whether a replacement in the file refers to the package with that path.
func (f *file) needs(path string) bool {
	for _, c := range f.replacements {
		if c.to == path {
			return true
		}
	}
	return false
}

// unused returns the indexes of the imports that the rewritten file does not use.
func (p *program) unused(f *file) []int {
	info := f.packages[0].Info
	all, replaced := make(map[types.Object]int), make(map[types.Object]int)
	ast.Inspect(f.ast, func(x ast.Node) bool {
		id, ok := x.(*ast.Ident)
		if !ok {
			return true
		}
		if pn, ok := info.Uses[id].(*types.PkgName); ok {
			all[pn]++
			if _, ok := f.replacements[p.position(id.Pos()).Offset]; ok {
				replaced[pn]++
			}
		}
		return true
	})
	var gone []int
	for i, spec := range f.ast.Imports {
		if pn := info.PkgNameOf(spec); pn != nil && replaced[pn] > 0 && replaced[pn] == all[pn] {
			gone = append(gone, i)
		}
	}
	return gone
}

func (p *program) readFile(name string) ([]byte, error) {
	if p.opts.ReadFile != nil {
		// An analyzer's driver provides only the files of the package and those that
		// the build excludes, not the tests.
		if src, err := p.opts.ReadFile(name); err == nil {
			return src, nil
		}
	}
	return os.ReadFile(name)
}

// nameIn returns the name of the package with path to in a file, and whether the file
// already imports it under that name. An import that is shadowed anywhere in the file
// does not count: the package is imported again under another name. given holds the
// names of the other imports to add.
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

// taken reports whether an import with that name would not compile in the file or would
// be shadowed there: because the file or its package, including files that the build
// excludes, declares the name.
func (p *program) taken(f *file, name string) bool {
	for _, pkg := range f.packages {
		if pkg.Types.Scope().Lookup(name) != nil || p.declaresUnseen(pkg, name) {
			return true
		}
	}
	for _, spec := range f.ast.Imports {
		if pn := f.packages[0].Info.PkgNameOf(spec); pn != nil && pn.Name() == name {
			return true
		}
	}
	return declares(f, name)
}

// declares reports whether the file declares the name anywhere, other than as an
// import, a field or a method.
func declares(f *file, name string) bool {
	info := f.packages[0].Info
	found := false
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if obj := info.Defs[n]; obj != nil && n.Name == name && !isMember(obj) {
				_, imported := obj.(*types.PkgName)
				found = found || !imported
			}
		case *ast.TypeSwitchStmt:
			// Info.Defs does not record the variable of a type switch.
			if a, ok := n.Assign.(*ast.AssignStmt); ok && a.Lhs[0].(*ast.Ident).Name == name {
				found = true
			}
		}
		return !found
	})
	return found
}

// isMember reports whether the object is a field or a method: its name only follows a
// dot.
func isMember(obj types.Object) bool {
	switch obj := obj.(type) {
	case *types.Var:
		return obj.IsField()
	case *types.Func:
		return obj.Signature().Recv() != nil
	}
	return false
}

// Apply returns the new contents of the file. src is the contents that were analyzed.
// If src is formatted with gofmt, the result is too. Apply keeps the line endings.
func (f File) Apply(src []byte) ([]byte, error) {
	at := 0
	for _, e := range f.Edits {
		if e.Start < at || e.End < e.Start || e.End > len(src) {
			return nil, fmt.Errorf("migrate: %s has changed since it was analyzed", f.Name)
		}
		at = e.End
	}
	edited := apply(src, f.Edits)
	plain, crlf := unixLines(src)
	if formatted, err := format.Source(plain); err != nil || !bytes.Equal(formatted, plain) {
		return edited, nil
	}
	if crlf {
		edited = bytes.ReplaceAll(edited, []byte("\r\n"), []byte("\n"))
	}
	edited, err := format.Source(edited)
	if crlf {
		edited = bytes.ReplaceAll(edited, []byte("\n"), []byte("\r\n"))
	}
	return edited, err
}

// apply carries out edits that are sorted and do not overlap.
func apply(src []byte, edits []Edit) []byte {
	var edited []byte
	at := 0
	for _, e := range edits {
		edited = append(append(edited, src[at:e.Start]...), e.New...)
		at = e.End
	}
	return append(edited, src[at:]...)
}

// unixLines converts a text whose lines all end in CR LF to LF, and reports whether it
// did.
func unixLines(src []byte) ([]byte, bool) {
	n := bytes.Count(src, []byte("\r\n"))
	if n == 0 || n != bytes.Count(src, []byte("\n")) {
		return src, false
	}
	return bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")), true
}
