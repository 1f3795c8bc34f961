package migrate

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// addedImport is an import to add to a file.
type addedImport struct{ path, name string }

// editImports returns an edit that removes some imports of a file and adds others. It
// formats the import declarations as gofmt does, and leaves the rest of the file alone.
func editImports(src []byte, removed []*ast.ImportSpec, added []addedImport) (Edit, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", src, parser.ParseComments|parser.ImportsOnly)
	if err != nil {
		return Edit{}, err
	}
	end := fset.Position(f.Name.End()).Offset // of the import declarations and the comment behind them
	for _, d := range f.Decls {
		end = fset.Position(d.End()).Offset
	}
	if n := bytes.IndexByte(src[end:], '\n'); n >= 0 && !bytes.ContainsRune(src[end:end+n], ';') {
		end += n
	}
	header := string(src[:end])
	if f, err = parser.ParseFile(fset, "", header, parser.ParseComments); err != nil {
		return Edit{}, err
	}
	onlyStandard := !slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return strings.Contains(importPath(s), ".") })
	for _, s := range removed {
		name := ""
		if s.Name != nil {
			name = s.Name.Name
		}
		astutil.DeleteNamedImport(fset, f, name, importPath(s))
	}
	for _, n := range added {
		name := n.name
		if name == path.Base(n.path) {
			name = ""
		}
		astutil.AddNamedImport(fset, f, name, n.path)
	}
	var out bytes.Buffer
	if err := format.Node(&out, fset, f); err != nil {
		return Edit{}, err
	}
	text := strings.TrimRight(out.String(), "\n")
	if onlyStandard {
		text = inOwnGroup(text, added)
	}
	if at := bytes.IndexByte(src, '\n'); at > 0 && src[at-1] == '\r' {
		text = strings.ReplaceAll(text, "\n", "\r\n")
		if strings.HasSuffix(header, "\r") {
			text += "\r"
		}
	}
	return Edit{Start: 0, End: end, New: text}, nil
}

// inOwnGroup moves the added imports behind the standard library's, in a group of their own.
func inOwnGroup(text string, added []addedImport) string {
	own := ""
	var others []string
	for line := range strings.Lines(text) {
		if slices.ContainsFunc(added, func(n addedImport) bool {
			return strings.HasPrefix(line, "\t") && strings.HasSuffix(strings.TrimSpace(line), `"`+n.path+`"`)
		}) {
			own += line
		} else {
			others = append(others, line)
		}
	}
	end := slices.IndexFunc(others, func(line string) bool { return strings.HasPrefix(line, ")") })
	if own == "" || end < 0 || strings.HasPrefix(others[end-1], "import (") {
		return text
	}
	return strings.Join(slices.Insert(others, end, "\n"+own), "")
}

func importPath(s *ast.ImportSpec) string { return strings.Trim(s.Path.Value, "\"`") }
