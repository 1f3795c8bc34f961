package migrate

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// newImport is an import to add to a file.
type newImport struct{ path, name string }

// spec returns the source text of the import.
func (n newImport) spec() string {
	if n.name == path.Base(n.path) {
		return `"` + n.path + `"`
	}
	return n.name + ` "` + n.path + `"`
}

// editImports returns an edit that removes the imports with the given indexes and adds
// others. Comments stay in place, except those of removed imports.
func editImports(src []byte, removed []int, add []newImport) (Edit, error) {
	original := src
	if len(removed) > 0 {
		im, err := parseImports(src)
		if err != nil {
			return Edit{}, err
		}
		spec := ""
		if len(add) > 0 {
			spec = add[0].spec()
		}
		edits, replaced := im.remove(removed, spec)
		src = applyEdits(src, edits)
		if replaced {
			add = add[1:]
		}
	}
	for _, n := range add {
		im, err := parseImports(src)
		if err != nil {
			return Edit{}, err
		}
		src = applyEdits(src, []Edit{im.insert(n)})
	}
	return editBetween(original, src), nil
}

// imports are the import declarations of a file.
type imports struct {
	src  []byte
	fset *token.FileSet
	file *ast.File
	nl   string // the file's newline: LF or CR LF
}

func parseImports(src []byte) (*imports, error) {
	im := &imports{src: src, fset: token.NewFileSet(), nl: "\n"}
	if at := bytes.IndexByte(src, '\n'); at > 0 && src[at-1] == '\r' {
		im.nl = "\r\n"
	}
	var err error
	im.file, err = parser.ParseFile(im.fset, "", src, parser.ParseComments|parser.ImportsOnly)
	return im, err
}

func (im *imports) offset(pos token.Pos) int { return im.fset.PositionFor(pos, false).Offset }
func (im *imports) line(pos token.Pos) int   { return im.fset.PositionFor(pos, false).Line }

func (im *imports) importDecls() []*ast.GenDecl {
	var decls []*ast.GenDecl
	for _, d := range im.file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			decls = append(decls, g)
		}
	}
	return decls
}

// remove returns edits that remove the imports with the given indexes. If replaced is true,
// one edit puts the import spec in the place of a removed import.
func (im *imports) remove(removed []int, spec string) (edits []Edit, replaced bool) {
	isRemoved := func(s ast.Spec) bool {
		return slices.ContainsFunc(removed, func(i int) bool { return im.file.Imports[i] == s })
	}
	onlyStandard := !slices.ContainsFunc(im.file.Imports, func(s *ast.ImportSpec) bool { return !isStandard(importPath(s)) })
	decls := im.importDecls()
	for i, d := range slices.Backward(decls) {
		if !slices.ContainsFunc(d.Specs, func(s ast.Spec) bool { return !isRemoved(s) }) {
			specs := d.Specs
			if spec != "" && onlyStandard && !replaced {
				s := specs[0]
				edits = append(edits, Edit{im.offset(s.Pos()), im.offset(s.(*ast.ImportSpec).Path.End()), spec})
				replaced = true
				for j, s := range specs[1:] {
					edits = append(edits, im.removeNode(s, s.(*ast.ImportSpec).Doc, im.nextInBlock(specs[1+j:])))
				}
				continue
			}
			var next ast.Node
			if i+1 < len(decls) && im.line(decls[i+1].Pos()) == im.line(d.End())+1 {
				next = decls[i+1]
			}
			edits = append(edits, im.removeNode(d, d.Doc, next))
			continue
		}
		for j, s := range d.Specs {
			if isRemoved(s) {
				doc := s.(*ast.ImportSpec).Doc
				if j > 0 && im.nextInBlock(d.Specs[j-1:]) != nil {
					edits = append(edits, im.removeNode(s, doc, nil))
				} else {
					edits = append(edits, im.removeNode(s, doc, im.nextInBlock(d.Specs[j:])))
				}
			}
		}
	}
	slices.SortFunc(edits, func(a, b Edit) int { return cmp.Compare(a.Start, b.Start) })
	return edits, replaced
}

// nextInBlock returns specs[1], or nil if an empty line separates it from specs[0].
func (im *imports) nextInBlock(specs []ast.Spec) ast.Node {
	if len(specs) < 2 {
		return nil
	}
	from := specs[1].Pos()
	if doc := specs[1].(*ast.ImportSpec).Doc; doc != nil {
		from = doc.Pos()
	}
	if im.line(from) > im.line(specs[0].End())+1 {
		return nil
	}
	return specs[1]
}

// removeNode removes n, an import or import declaration, with its comments. It keeps the
// doc comment if next, the import after n, is not nil: the comment may be about both.
func (im *imports) removeNode(n ast.Node, doc *ast.CommentGroup, next ast.Node) Edit {
	start, end := im.offset(n.Pos()), im.offset(n.End())
	from, to := im.lineStart(start), im.lineEnd(end)
	otherText := slices.Concat(im.src[from:start], im.src[end:to])
	for _, g := range im.file.Comments {
		for _, c := range g.List {
			// Erase the comments before and behind n in otherText.
			a, b := im.offset(c.Pos()), im.offset(c.Pos())+len(c.Text)
			switch {
			case a >= from && b <= start:
				overwrite(otherText[a-from : b-from])
			case a >= end && b <= to:
				overwrite(otherText[a-end+start-from : b-end+start-from])
			}
		}
	}
	if len(bytes.TrimSpace(otherText)) > 0 {
		return im.removeInline(start, end)
	}
	if doc != nil && next == nil {
		from = im.lineStart(im.offset(doc.Pos()))
	}
	before, after := im.lineBefore(from), strings.TrimSpace(string(im.src[to:im.lineEnd(to)]))
	switch {
	case strings.TrimSpace(before) == "" && from > 0 && (after == "" || strings.HasPrefix(after, ")")):
		from -= len(before)
	case strings.HasSuffix(strings.TrimSpace(before), "(") && after == "" && to < len(im.src):
		to = im.lineEnd(to)
	}
	return Edit{Start: from, End: to}
}

func overwrite(text []byte) {
	for i := range text {
		text[i] = ' '
	}
}

// removeInline removes an import that shares its line with other code, with one semicolon.
func (im *imports) removeInline(start, end int) Edit {
	textAfter := bytes.TrimLeft(im.src[end:], " \t")
	if bytes.HasPrefix(textAfter, []byte(";")) {
		textAfter = bytes.TrimLeft(textAfter[1:], " \t")
		return Edit{Start: start, End: len(im.src) - len(textAfter)}
	}
	if before := bytes.TrimRight(im.src[:start], " \t"); bytes.HasSuffix(before, []byte(";")) {
		return Edit{Start: len(before) - 1, End: end}
	}
	return Edit{Start: start, End: end}
}

// lineStart returns where the line that contains offset at begins. lineEnd returns where
// the next line begins.
func (im *imports) lineStart(at int) int { return bytes.LastIndexByte(im.src[:at], '\n') + 1 }

func (im *imports) lineEnd(at int) int {
	if i := bytes.IndexByte(im.src[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(im.src)
}

// lineBefore returns the line that ends at offset at.
func (im *imports) lineBefore(at int) string {
	if at == 0 {
		return ""
	}
	return string(im.src[im.lineStart(at-1):at])
}

// insert adds an import to a block with imports of other modules, in sorted order. If there
// is no such block, it adds one.
func (im *imports) insert(n newImport) Edit {
	spec := n.spec()
	decls := im.importDecls()
	if len(decls) == 0 {
		at := im.lineEnd(im.offset(im.file.Name.End()))
		return Edit{Start: at, End: at, New: im.nl + "import " + spec + im.nl}
	}
	decl, best := im.bestMatch(decls, n.path)
	if decl == nil {
		for _, d := range decls {
			if d.Lparen.IsValid() {
				decl = d
			}
		}
	}
	if decl == nil {
		decl = decls[len(decls)-1]
	}
	last := decl.Specs[len(decl.Specs)-1]
	end := im.offset(last.End())
	switch {
	case !decl.Lparen.IsValid() && len(decls) > 1:
		at := im.offset(decl.End())
		return Edit{Start: at, End: at, New: im.nl + "import " + spec}
	case !decl.Lparen.IsValid():
		start, gap := im.offset(decl.Specs[0].Pos()), ""
		if best == nil {
			gap = im.nl
		}
		// Keep the comment behind the import on its line.
		if c := last.(*ast.ImportSpec).Comment; c != nil {
			end = im.offset(c.End())
			if im.nl == "\r\n" {
				end -= len(im.src[:end]) - len(bytes.TrimRight(im.src[:end], "\r"))
			}
		}
		text := string(im.src[start:end])
		return Edit{Start: start, End: end, New: "(" + im.nl + "\t" + text + im.nl + gap + "\t" + spec + im.nl + ")"}
	case im.line(decl.Rparen) == im.line(last.End()):
		return Edit{Start: end, End: end, New: "; " + spec}
	case best == nil:
		at := im.lineStart(im.offset(decl.Rparen))
		return Edit{Start: at, End: at, New: im.nl + "\t" + spec + im.nl}
	}
	return im.insertSorted(decl, best, n)
}

// insertSorted adds an import to the block of imports that contains best.
func (im *imports) insertSorted(decl *ast.GenDecl, best ast.Spec, n newImport) Edit {
	spec := n.spec()
	i := slices.Index(decl.Specs, best)
	for i > 0 && im.nextInBlock(decl.Specs[i-1:]) != nil {
		i--
	}
	first := decl.Specs[i]
	if importPath(first.(*ast.ImportSpec)) > n.path {
		if im.line(first.Pos()) == im.line(decl.Lparen) { // gofmt would split this line
			at := im.offset(first.Pos())
			return Edit{Start: at, End: at, New: spec + "; "}
		}
		at := im.lineStart(im.offset(first.Pos()))
		return Edit{Start: at, End: at, New: "\t" + spec + im.nl}
	}
	for im.nextInBlock(decl.Specs[i:]) != nil && importPath(decl.Specs[i+1].(*ast.ImportSpec)) < n.path {
		i++
	}
	at := im.lineEnd(im.offset(decl.Specs[i].End()))
	return Edit{Start: at, End: at, New: "\t" + spec + im.nl}
}

// bestMatch returns the import whose path has the most leading elements in common with
// newPath, and its declaration. It ignores the standard library.
func (im *imports) bestMatch(decls []*ast.GenDecl, newPath string) (decl *ast.GenDecl, best ast.Spec) {
	maxCommon := -1
	for _, d := range decls {
		for _, s := range d.Specs {
			path := importPath(s.(*ast.ImportSpec))
			if isStandard(path) {
				continue
			}
			if n := commonElements(path, newPath); n > maxCommon {
				decl, best, maxCommon = d, s, n
			}
		}
	}
	return decl, best
}

// commonElements returns how many elements two paths have in common at their start.
func commonElements(x, y string) int {
	a, b := strings.Split(x, "/"), strings.Split(y, "/")
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// editBetween returns the edit that turns before into after.
func editBetween(before, after []byte) Edit {
	start := 0
	for start < len(before) && start < len(after) && before[start] == after[start] {
		start++
	}
	end, afterEnd := len(before), len(after)
	for end > start && afterEnd > start && before[end-1] == after[afterEnd-1] {
		end--
		afterEnd--
	}
	return Edit{Start: start, End: end, New: string(after[start:afterEnd])}
}

func importPath(s *ast.ImportSpec) string { return strings.Trim(s.Path.Value, "\"`") }

// isStandard reports whether an import path looks like one of the standard library: its
// first element has no dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
