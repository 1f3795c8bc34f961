package migrate

import (
	"fmt"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// analyzer runs Analyze under analysistest. It reports each call site, and suggests one fix,
// which rewrites all that can be rewritten.
var analyzer = &analysis.Analyzer{
	Name:       "tickless",
	Doc:        "report timers of package time and contexts with deadlines",
	ResultType: reflect.TypeFor[*Report](),
	Run:        runPass,
}

func runPass(pass *analysis.Pass) (any, error) {
	pkg := &Package{
		Path:     pass.Pkg.Path(),
		Files:    pass.Files,
		Types:    pass.Pkg,
		Info:     pass.TypesInfo,
		Importer: importsOf(pass.Pkg),
		Sizes:    pass.TypesSizes,
		Unseen:   unseenFiles(pass),
	}
	report := Analyze(pass.Fset, pkg, Options{ReadFile: pass.ReadFile})
	posOf := func(p token.Position) token.Pos {
		for _, f := range pass.Files {
			if tf := pass.Fset.File(f.FileStart); tf.Name() == p.Filename {
				return tf.Pos(p.Offset)
			}
		}
		return token.NoPos
	}

	fix := analysis.SuggestedFix{Message: "Use Tickless's timers"}
	for _, f := range report.Files {
		for _, file := range pass.Files {
			tf := pass.Fset.File(file.FileStart)
			if tf.Name() != f.Name {
				continue
			}
			for _, e := range f.Edits {
				fix.TextEdits = append(fix.TextEdits, analysis.TextEdit{Pos: tf.Pos(e.Start), End: tf.Pos(e.End), NewText: []byte(e.New)})
			}
		}
	}
	needsFix := true
	for _, s := range report.Sites {
		d := analysis.Diagnostic{Pos: posOf(s.Pos)}
		switch {
		case s.Rewritten():
			d.Message = fmt.Sprintf("%s can be %s (%s)", s.From, s.To, s.Use)
			if needsFix {
				d.SuggestedFixes = []analysis.SuggestedFix{fix}
				needsFix = false
			}
		case s.Skipped:
			d.Message = fmt.Sprintf("%s stays: not worth it (%s)", s.From, s.Use)
		default:
			d.Message = fmt.Sprintf("%s stays: %s", s.From, s.Left[0].Text)
		}
		pass.Report(d)
	}
	return report, nil
}

// importedPackages are the packages that a package imports, directly or not, by path.
type importedPackages map[string]*types.Package

func importsOf(pkg *types.Package) importedPackages {
	imported := make(importedPackages)
	var add func(pkg *types.Package)
	add = func(pkg *types.Package) {
		for _, dep := range pkg.Imports() {
			if imported[dep.Path()] == nil {
				imported[dep.Path()] = dep
				add(dep)
			}
		}
	}
	add(pkg)
	return imported
}

func (m importedPackages) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if pkg := m[path]; pkg != nil && pkg.Complete() {
		return pkg, nil
	}
	return nil, fmt.Errorf("package %s is not imported", path)
}

// unseenFiles returns the Go files in the package's folder that the pass does not contain,
// such as files for other systems.
func unseenFiles(pass *analysis.Pass) []string {
	if len(pass.Files) == 0 {
		return nil
	}
	passFiles := make(map[string]bool)
	for _, f := range pass.Files {
		passFiles[pass.Fset.File(f.FileStart).Name()] = true
	}
	dir := filepath.Dir(pass.Fset.File(pass.Files[0].FileStart).Name())
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var unseen []string
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if strings.HasSuffix(name, ".go") && !e.IsDir() && !passFiles[name] {
			unseen = append(unseen, name)
		}
	}
	return unseen
}
