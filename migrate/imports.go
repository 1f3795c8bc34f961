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

// addedImport is an import to add to a file.
type addedImport struct{ path, name string }

// sourceText returns the source text of the import.
func (n addedImport) sourceText() string {
	if n.name == path.Base(n.path) {
		return `"` + n.path + `"`
	}
	return n.name + ` "` + n.path + `"`
}

// editImports returns an edit that removes the imports with the given indexes and adds
// others. Comments stay in place, except those of removed imports.
func editImports(src []byte, removed []int, added []addedImport) (Edit, error) {
	originalSrc := src
	if len(removed) > 0 {
		im, err := parseImports(src)
		if err != nil {
			return Edit{}, err
		}
		importText := ""
		if len(added) > 0 {
			importText = added[0].sourceText()
		}
		edits, replaced := im.removeImports(removed, importText)
		src = applyEdits(src, edits)
		if replaced {
			added = added[1:]
		}
	}
	for _, n := range added {
		im, err := parseImports(src)
		if err != nil {
			return Edit{}, err
		}
		src = applyEdits(src, []Edit{im.insertImport(n)})
	}
	return editBetween(originalSrc, src), nil
}

// fileImports are the import declarations of a file.
type fileImports struct {
	src     []byte
	fset    *token.FileSet
	file    *ast.File
	newline string // the file's newline: LF or CR LF
}

func parseImports(src []byte) (*fileImports, error) {
	im := &fileImports{src: src, fset: token.NewFileSet(), newline: "\n"}
	if at := bytes.IndexByte(src, '\n'); at > 0 && src[at-1] == '\r' {
		im.newline = "\r\n"
	}
	var err error
	im.file, err = parser.ParseFile(im.fset, "", src, parser.ParseComments|parser.ImportsOnly)
	return im, err
}

func (im *fileImports) offsetOf(pos token.Pos) int { return im.fset.PositionFor(pos, false).Offset }
func (im *fileImports) lineOf(pos token.Pos) int   { return im.fset.PositionFor(pos, false).Line }

func (im *fileImports) importDecls() []*ast.GenDecl {
	var decls []*ast.GenDecl
	for _, d := range im.file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			decls = append(decls, g)
		}
	}
	return decls
}

// removeImports returns edits that remove the imports with the given indexes. If replaced
// is true, one edit puts importText in the place of a removed import.
func (im *fileImports) removeImports(removed []int, importText string) (edits []Edit, replaced bool) {
	isRemoved := func(s ast.Spec) bool {
		return slices.ContainsFunc(removed, func(i int) bool { return im.file.Imports[i] == s })
	}
	allStandard := !slices.ContainsFunc(im.file.Imports, func(s *ast.ImportSpec) bool { return !isStandardPath(importPath(s)) })
	decls := im.importDecls()
	for i, d := range slices.Backward(decls) {
		if !slices.ContainsFunc(d.Specs, func(s ast.Spec) bool { return !isRemoved(s) }) {
			specs := d.Specs
			if importText != "" && allStandard && !replaced {
				s := specs[0]
				edits = append(edits, Edit{im.offsetOf(s.Pos()), im.offsetOf(s.(*ast.ImportSpec).Path.End()), importText})
				replaced = true
				for j, s := range specs[1:] {
					edits = append(edits, im.removeNode(s, s.(*ast.ImportSpec).Doc, im.nextSpecInBlock(specs[1+j:])))
				}
				continue
			}
			var next ast.Node
			if i+1 < len(decls) && im.lineOf(decls[i+1].Pos()) == im.lineOf(d.End())+1 {
				next = decls[i+1]
			}
			edits = append(edits, im.removeNode(d, d.Doc, next))
			continue
		}
		for j, s := range d.Specs {
			if isRemoved(s) {
				doc := s.(*ast.ImportSpec).Doc
				if j > 0 && im.nextSpecInBlock(d.Specs[j-1:]) != nil {
					edits = append(edits, im.removeNode(s, doc, nil))
				} else {
					edits = append(edits, im.removeNode(s, doc, im.nextSpecInBlock(d.Specs[j:])))
				}
			}
		}
	}
	slices.SortFunc(edits, func(a, b Edit) int { return cmp.Compare(a.Start, b.Start) })
	return edits, replaced
}

// nextSpecInBlock returns specs[1], or nil if an empty line separates it from specs[0].
func (im *fileImports) nextSpecInBlock(specs []ast.Spec) ast.Node {
	if len(specs) < 2 {
		return nil
	}
	specStart := specs[1].Pos()
	if doc := specs[1].(*ast.ImportSpec).Doc; doc != nil {
		specStart = doc.Pos()
	}
	if im.lineOf(specStart) > im.lineOf(specs[0].End())+1 {
		return nil
	}
	return specs[1]
}

// removeNode removes n, an import or import declaration, with its comments. It keeps the
// doc comment if next, the import after n, is not nil: the comment may be about both.
func (im *fileImports) removeNode(n ast.Node, doc *ast.CommentGroup, next ast.Node) Edit {
	start, end := im.offsetOf(n.Pos()), im.offsetOf(n.End())
	from, to := im.lineStart(start), im.nextLineStart(end)
	otherText := slices.Concat(im.src[from:start], im.src[end:to])
	for _, g := range im.file.Comments {
		for _, c := range g.List {
			// Erase the comments before and behind n in otherText.
			a, b := im.offsetOf(c.Pos()), im.offsetOf(c.Pos())+len(c.Text)
			switch {
			case a >= from && b <= start:
				blankOut(otherText[a-from : b-from])
			case a >= end && b <= to:
				blankOut(otherText[a-end+start-from : b-end+start-from])
			}
		}
	}
	if len(bytes.TrimSpace(otherText)) > 0 {
		return im.removeInlineImport(start, end)
	}
	if doc != nil && next == nil {
		from = im.lineStart(im.offsetOf(doc.Pos()))
	}
	before, after := im.previousLine(from), strings.TrimSpace(string(im.src[to:im.nextLineStart(to)]))
	switch {
	case strings.TrimSpace(before) == "" && from > 0 && (after == "" || strings.HasPrefix(after, ")")):
		from -= len(before)
	case strings.HasSuffix(strings.TrimSpace(before), "(") && after == "" && to < len(im.src):
		to = im.nextLineStart(to)
	}
	return Edit{Start: from, End: to}
}

func blankOut(text []byte) {
	for i := range text {
		text[i] = ' '
	}
}

// removeInlineImport removes an import that shares its line with other code, and one
// semicolon.
func (im *fileImports) removeInlineImport(start, end int) Edit {
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

// lineStart returns where the line that contains offset at begins. nextLineStart
// returns where the next line begins.
func (im *fileImports) lineStart(at int) int { return bytes.LastIndexByte(im.src[:at], '\n') + 1 }

func (im *fileImports) nextLineStart(at int) int {
	if i := bytes.IndexByte(im.src[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(im.src)
}

// previousLine returns the line that ends at offset at.
func (im *fileImports) previousLine(at int) string {
	if at == 0 {
		return ""
	}
	return string(im.src[im.lineStart(at-1):at])
}

// insertImport adds an import to a block with imports of other modules, in sorted order.
// If there is no such block, it adds one.
func (im *fileImports) insertImport(n addedImport) Edit {
	importText := n.sourceText()
	decls := im.importDecls()
	if len(decls) == 0 {
		at := im.nextLineStart(im.offsetOf(im.file.Name.End()))
		return Edit{Start: at, End: at, New: im.newline + "import " + importText + im.newline}
	}
	decl, closest := im.closestImport(decls, n.path)
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
	lastSpec := decl.Specs[len(decl.Specs)-1]
	lastSpecEnd := im.offsetOf(lastSpec.End())
	switch {
	case !decl.Lparen.IsValid() && len(decls) > 1:
		at := im.offsetOf(decl.End())
		return Edit{Start: at, End: at, New: im.newline + "import " + importText}
	case !decl.Lparen.IsValid():
		start, gap := im.offsetOf(decl.Specs[0].Pos()), ""
		if closest == nil {
			gap = im.newline
		}
		// Keep the comment behind the import on its line.
		if c := lastSpec.(*ast.ImportSpec).Comment; c != nil {
			lastSpecEnd = im.offsetOf(c.End())
			if im.newline == "\r\n" {
				lastSpecEnd -= len(im.src[:lastSpecEnd]) - len(bytes.TrimRight(im.src[:lastSpecEnd], "\r"))
			}
		}
		oldText := string(im.src[start:lastSpecEnd])
		return Edit{Start: start, End: lastSpecEnd, New: "(" + im.newline + "\t" + oldText + im.newline + gap + "\t" + importText + im.newline + ")"}
	case im.lineOf(decl.Rparen) == im.lineOf(lastSpec.End()):
		return Edit{Start: lastSpecEnd, End: lastSpecEnd, New: "; " + importText}
	case closest == nil:
		at := im.lineStart(im.offsetOf(decl.Rparen))
		return Edit{Start: at, End: at, New: im.newline + "\t" + importText + im.newline}
	}
	return im.insertSortedImport(decl, closest, n)
}

// insertSortedImport adds an import to the block of imports that contains closest.
func (im *fileImports) insertSortedImport(decl *ast.GenDecl, closest ast.Spec, n addedImport) Edit {
	importText := n.sourceText()
	i := slices.Index(decl.Specs, closest)
	for i > 0 && im.nextSpecInBlock(decl.Specs[i-1:]) != nil {
		i--
	}
	firstSpec := decl.Specs[i]
	if importPath(firstSpec.(*ast.ImportSpec)) > n.path {
		if im.lineOf(firstSpec.Pos()) == im.lineOf(decl.Lparen) { // gofmt would split this line
			at := im.offsetOf(firstSpec.Pos())
			return Edit{Start: at, End: at, New: importText + "; "}
		}
		at := im.lineStart(im.offsetOf(firstSpec.Pos()))
		return Edit{Start: at, End: at, New: "\t" + importText + im.newline}
	}
	for im.nextSpecInBlock(decl.Specs[i:]) != nil && importPath(decl.Specs[i+1].(*ast.ImportSpec)) < n.path {
		i++
	}
	at := im.nextLineStart(im.offsetOf(decl.Specs[i].End()))
	return Edit{Start: at, End: at, New: "\t" + importText + im.newline}
}

// closestImport returns the import whose path has the most leading elements in common with
// newPath, and its declaration. It ignores the standard library.
func (im *fileImports) closestImport(decls []*ast.GenDecl, newPath string) (decl *ast.GenDecl, closest ast.Spec) {
	maxCommonElements := -1
	for _, d := range decls {
		for _, s := range d.Specs {
			path := importPath(s.(*ast.ImportSpec))
			if isStandardPath(path) {
				continue
			}
			if n := commonPathElements(path, newPath); n > maxCommonElements {
				decl, closest, maxCommonElements = d, s, n
			}
		}
	}
	return decl, closest
}

// commonPathElements returns how many elements two paths have in common at their start.
func commonPathElements(x, y string) int {
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

// isStandardPath reports whether an import path looks like one of the standard library: its
// first element has no dot.
func isStandardPath(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
