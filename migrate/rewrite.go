package migrate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/types"
	"maps"
	"path"
	"slices"
)

// rewriteFile returns the edits of a file: its replacements, and one edit for its imports.
func (p *program) rewriteFile(f *file) (File, error) {
	result := File{Name: f.name}
	packageNames := make(map[string]string) // of the packages, by path
	var added []addedImport
	for _, to := range []string{DeadlinePath, TimerPath} {
		if !f.needsImport(to) {
			continue
		}
		name, imported := p.importNameIn(f, to, packageNames)
		packageNames[to] = name
		if !imported {
			added = append(added, addedImport{to, name})
		}
	}
	for _, offset := range slices.Sorted(maps.Keys(f.replacements)) {
		c := f.replacements[offset]
		result.Edits = append(result.Edits, Edit{Start: offset, End: offset + c.oldLen, New: packageNames[c.newPath]})
	}
	unused := p.unusedImports(f)
	if len(added) == 0 && len(unused) == 0 {
		return result, nil
	}
	src, err := p.readFile(f.name)
	if err != nil {
		return File{}, err
	}
	e, err := editImports(src, unused, added)
	if err != nil {
		return File{}, err
	}
	result.Edits = slices.Insert(result.Edits, 0, e)
	return result, nil
}

// needsImport reports whether the rewritten file uses the package with the given path.
func (f *file) needsImport(path string) bool {
	for _, c := range f.replacements {
		if c.newPath == path {
			return true
		}
	}
	return false
}

// unusedImports returns the imports that only replaced code uses.
func (p *program) unusedImports(f *file) []*ast.ImportSpec {
	info := p.pkg.Info
	uses, replacedUses := make(map[types.Object]int), make(map[types.Object]int)
	ast.Inspect(f.ast, func(x ast.Node) bool {
		id, ok := x.(*ast.Ident)
		if !ok {
			return true
		}
		if pn, ok := info.Uses[id].(*types.PkgName); ok {
			uses[pn]++
			if _, ok := f.replacements[p.positionOf(id.Pos()).Offset]; ok {
				replacedUses[pn]++
			}
		}
		return true
	})
	var removed []*ast.ImportSpec
	for _, spec := range f.ast.Imports {
		if pn := info.PkgNameOf(spec); pn != nil && replacedUses[pn] > 0 && replacedUses[pn] == uses[pn] {
			removed = append(removed, spec)
		}
	}
	return removed
}

// importNameIn returns the name by which file f imports the package pkgPath. If imported is
// false, the caller must add an import with this name. givenNames are the names of the
// caller's other new imports.
func (p *program) importNameIn(f *file, pkgPath string, givenNames map[string]string) (name string, imported bool) {
	for _, spec := range f.ast.Imports {
		if importPath(spec) != pkgPath {
			continue
		}
		name = path.Base(pkgPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name != "_" && name != "." && !p.declaresName(f, name) {
			return name, true
		}
	}
	for i := 0; ; i++ {
		switch i {
		case 0:
			name = path.Base(pkgPath)
		case 1:
			name = "tickless"
		default:
			name = fmt.Sprint("tickless", i)
		}
		if !p.isNameTaken(f, name) && !slices.Contains(slices.Collect(maps.Values(givenNames)), name) {
			return name, false
		}
	}
}

// isNameTaken reports whether the file or its package already declares the name. An import
// cannot have such a name.
func (p *program) isNameTaken(f *file, name string) bool {
	if p.pkg.Types.Scope().Lookup(name) != nil || slices.ContainsFunc(p.unseen, func(f *ast.File) bool {
		return f.Name.Name == p.pkg.Types.Name() && mentions(f, name)
	}) {
		return true
	}
	for _, spec := range f.ast.Imports {
		if pn := p.pkg.Info.PkgNameOf(spec); pn != nil && pn.Name() == name {
			return true
		}
	}
	return p.declaresName(f, name)
}

// mentions reports whether a file without type information uses the name.
func mentions(f *ast.File, name string) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// isMember reports whether the object is a field or a method.
func isMember(obj types.Object) bool {
	switch obj := obj.(type) {
	case *types.Var:
		return obj.IsField()
	case *types.Func:
		return obj.Signature().Recv() != nil
	}
	return false
}

// declaresName reports whether the file declares the name at any level. Imports, fields and
// methods do not count.
func (p *program) declaresName(f *file, name string) bool {
	found := false
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if obj := p.pkg.Info.Defs[n]; obj != nil && n.Name == name && !isMember(obj) {
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

// Apply returns the file's new contents. src must be the contents that were analyzed. If
// src is formatted with gofmt, so is the result. Line endings stay as they are.
func (f File) Apply(src []byte) ([]byte, error) {
	at := 0
	for _, e := range f.Edits {
		if e.Start < at || e.End < e.Start || e.End > len(src) {
			return nil, fmt.Errorf("migrate: %s has changed since it was analyzed", f.Name)
		}
		at = e.End
	}
	edited := applyEdits(src, f.Edits)
	plain, crlf := toUnixLines(src)
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

// applyEdits applies edits, which must be sorted and must not overlap.
func applyEdits(src []byte, edits []Edit) []byte {
	var edited []byte
	at := 0
	for _, e := range edits {
		edited = append(append(edited, src[at:e.Start]...), e.New...)
		at = e.End
	}
	return append(edited, src[at:]...)
}

// toUnixLines converts CR LF to LF if all lines of src end in CR LF. It reports whether it
// did.
func toUnixLines(src []byte) ([]byte, bool) {
	n := bytes.Count(src, []byte("\r\n"))
	if n == 0 || n != bytes.Count(src, []byte("\n")) {
		return src, false
	}
	return bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")), true
}
