package migrate

import (
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports the calls of a package that start timers. It suggests one fix, which
// rewrites all calls that can be rewritten. Its result is a *Report.
//
// `tickless migrate` does the same for all packages of a module.
var Analyzer = newAnalyzer()

func newAnalyzer() *analysis.Analyzer {
	var opts Options
	reportNotRewritten := true
	a := &analysis.Analyzer{
		Name:       "tickless",
		Doc:        "report timers of package time and contexts with deadlines that Tickless can replace\n\nThe fix rewrites these timers and the types that contain them, and nothing else.",
		URL:        "https://pkg.go.dev/github.com/tickless/tickless/migrate",
		ResultType: reflect.TypeFor[*Report](),
	}
	a.Flags.BoolVar(&opts.Tests, "tests", false, "rewrite call sites in tests too, not only what shares a type with the code under test")
	a.Flags.BoolVar(&opts.All, "all", false, "rewrite call sites too that are not worth it")
	a.Flags.BoolVar(&reportNotRewritten, "left", true, "also report call sites that are not rewritten, with the reasons")
	a.Run = func(pass *analysis.Pass) (any, error) { return runPass(pass, opts, reportNotRewritten) }
	return a
}

func runPass(pass *analysis.Pass, opts Options, reportNotRewritten bool) (any, error) {
	pkg := &Package{
		Path:     pass.Pkg.Path(),
		Files:    pass.Files,
		Types:    pass.Pkg,
		Info:     pass.TypesInfo,
		Importer: importsOf(pass.Pkg),
		Sizes:    pass.TypesSizes,
		Unseen:   unseenFiles(pass),
	}
	opts.ReadFile = pass.ReadFile
	report := Analyze(pass.Fset, pkg, opts)

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
		switch {
		case s.Rewritten():
			d := analysis.Diagnostic{Pos: s.pos, Category: "rewrite", Message: fmt.Sprintf("%s can be %s (%s)", s.From, s.To, s.Use)}
			if needsFix {
				d.SuggestedFixes = []analysis.SuggestedFix{fix}
				needsFix = false
			}
			pass.Report(d)
		case !reportNotRewritten:
		case s.Skipped:
			pass.Report(analysis.Diagnostic{Pos: s.pos, Category: "left", Message: fmt.Sprintf("%s stays: not worth it (%s)", s.From, s.Use)})
		default:
			d := analysis.Diagnostic{Pos: s.pos, Category: "left", Message: fmt.Sprintf("%s stays: %s", s.From, s.Left[0].Text)}
			for _, r := range s.Left {
				if r.pos.IsValid() && r.pos != s.pos {
					d.Related = append(d.Related, analysis.RelatedInformation{Pos: r.pos, Message: r.Text})
				}
			}
			pass.Report(d)
		}
	}
	for _, w := range report.Warnings {
		pass.Report(analysis.Diagnostic{Pos: w.pos, Category: "goroutines", Message: w.Text})
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
