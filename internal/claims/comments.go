package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// comments returns what a Go file's package comment says, and with exported also what the
// comments of its exported identifiers do: these sentences begin with the identifier.
func comments(path string, exported bool) (all []sentence, err error) {
	mode := parser.PackageClauseOnly | parser.ParseComments
	if exported {
		mode = parser.ParseComments
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, mode)
	if err != nil {
		return nil, err
	}
	if f.Doc != nil {
		all = sentencesOf(pageOf(files, f.Doc))
	}
	for name, doc := range docs(f) {
		for _, s := range sentencesOf(pageOf(files, doc)) {
			s.text = name + ": " + s.text
			all = append(all, s)
		}
	}
	return all, nil
}

// pageOf returns a comment as a page, with as many lines before it as in the file.
func pageOf(files *token.FileSet, doc *ast.CommentGroup) string {
	var page strings.Builder
	page.WriteString(strings.Repeat("\n", files.Position(doc.Pos()).Line-1))
	for _, c := range doc.List {
		text := strings.TrimPrefix(c.Text, "//")
		if strings.HasPrefix(text, "\t") {
			text = "" // code
		}
		page.WriteString(strings.TrimPrefix(text, " ") + "\n")
	}
	return page.String()
}

// docs goes through the comments of a file's exported identifiers, methods as Type.Method.
func docs(f *ast.File) func(yield func(string, *ast.CommentGroup) bool) {
	return func(yield func(string, *ast.CommentGroup) bool) {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d.Recv.List[0].Type) + "." + name
				}
				if d.Doc != nil && d.Name.IsExported() && ast.IsExported(name) && !yield(name, d.Doc) {
					return
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					name, doc := specDoc(spec)
					if doc == nil && !d.Lparen.IsValid() {
						doc = d.Doc
					}
					if doc != nil && ast.IsExported(name) && !yield(name, doc) {
						return
					}
				}
			}
		}
	}
}

func specDoc(spec ast.Spec) (name string, doc *ast.CommentGroup) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return spec.Name.Name, spec.Doc
	case *ast.ValueSpec:
		return spec.Names[0].Name, spec.Doc
	}
	return "", nil
}

// receiver returns the name of a receiver's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
