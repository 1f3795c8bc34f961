package project

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/tickless/tickless/migrate"
)

// Config says which packages to load and what to rewrite.
type Config struct {
	// Dir is the folder to run the go command in. Empty means the current folder.
	Dir string
	// Patterns are the packages to rewrite, written as for go build. Empty means the
	// package in Dir.
	Patterns []string
	// Tags are build tags, separated by commas.
	Tags string
	// Env is the environment of the go command. Nil means that of this process.
	Env []string

	migrate.Options
}

// A Project is the result of analyzing a module.
type Project struct {
	// Module is the module's path, Dir its folder.
	Module, Dir string
	Report      *migrate.Report
	// Warnings are texts about code that may behave differently after the rewrite.
	Warnings []string

	changes []Change
	sources map[string][]byte // by file name, as they were parsed
}

// Load analyzes the packages to rewrite, one by one. It compiles nothing: it type-checks the
// packages that start timers, and the declarations of those that they import.
func Load(ctx context.Context, cfg Config) (*Project, error) {
	matched, module, err := matchPatterns(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p := &Project{Module: module.Path, Dir: module.Dir, Report: &migrate.Report{}, sources: make(map[string][]byte)}
	opts := cfg.Options
	opts.ReadFile = p.readSource
	l := &loader{fset: token.NewFileSet(), dependencies: make(map[*packages.Package]*types.Package)}
	problems := compileErrors{dir: module.Dir}
	for _, pkg := range matched {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		files, fileErrors := p.parse(l.fset, pkg, cfg.ReadFile)
		if !p.hasSites(l.fset, files, opts) {
			continue
		}
		if problems.addParsing(pkg, fileErrors) {
			continue
		}
		checked, errs := l.check(pkg, files)
		for _, e := range errs {
			problems.add(e.Fset.Position(e.Pos).String(), e.Msg)
		}
		if len(errs) > 0 {
			continue
		}
		checked.Unseen = unseenFiles(pkg)
		checked.Fixed = make(map[string]string)
		for _, name := range pkg.GoFiles {
			if p.isLink(name) {
				checked.Fixed[name] = "the file is a link"
			}
		}
		p.Report.Add(migrate.Analyze(l.fset, checked, opts))
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	if err := p.computeChanges(); err != nil {
		return nil, err
	}
	if len(p.changes) == 0 {
		p.Warnings = nil
	}
	return p, nil
}

// parse parses a package's files and keeps their sources for readSource, because the files
// on disk may change meanwhile. A nil read means os.ReadFile.
func (p *Project) parse(fset *token.FileSet, pkg *packages.Package, read func(string) ([]byte, error)) (files []*ast.File, errs []error) {
	if read == nil {
		read = os.ReadFile
	}
	for _, name := range pkg.GoFiles {
		src, err := read(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.sources[name] = src
		f, err := parser.ParseFile(fset, name, src, parser.AllErrors|parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			errs = append(errs, err)
		}
		if f != nil {
			files = append(files, f)
		}
	}
	return files, errs
}

// readSource returns a file's contents: as they were parsed, or else from disk.
func (p *Project) readSource(name string) ([]byte, error) {
	if src, ok := p.sources[name]; ok {
		return src, nil
	}
	return os.ReadFile(name)
}

// warningGoroutineCount is the text of a warning about a test that counts goroutines.
const warningGoroutineCount = "goroutines are counted here, and the library keeps one for up to 20 ms after its last timer was stopped:" +
	" wait until it has ended, see \"Leak checkers\" in docs/migrating.md"

// hasSites reports whether a package has call sites to analyze. If it has some in tests only,
// and the tests stay as they are, hasSites counts them. It also warns of tests that count
// goroutines.
func (p *Project) hasSites(fset *token.FileSet, files []*ast.File, opts migrate.Options) bool {
	sites, testSites := 0, 0
	for _, f := range files {
		n, leakCheckPos := migrate.Scan(f)
		if !strings.HasSuffix(fset.File(f.FileStart).Name(), "_test.go") {
			sites += n
			continue
		}
		testSites += n
		if leakCheckPos.IsValid() {
			p.Warnings = append(p.Warnings, p.positionText(fset.Position(leakCheckPos))+": "+warningGoroutineCount)
		}
	}
	if sites > 0 || testSites > 0 && opts.Tests {
		return true
	}
	p.Report.Muted += testSites
	return false
}

// matchPatterns returns the packages that the patterns match, sorted by path, and their
// module. Of a package with and without its tests, it returns the former.
func matchPatterns(ctx context.Context, cfg Config) ([]*packages.Package, *packages.Module, error) {
	config := &packages.Config{Context: ctx, Dir: cfg.Dir, Env: cfg.Env, Tests: true}
	config.Mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule | packages.NeedTypesSizes
	if cfg.Tags != "" {
		config.BuildFlags = []string{"-tags=" + cfg.Tags}
	}
	list, err := packages.Load(config, cfg.Patterns...)
	if err != nil {
		text, stderr, _ := strings.Cut(strings.TrimPrefix(err.Error(), "err: "), ": stderr: ")
		if stderr = strings.TrimSpace(stderr); stderr != "" {
			text = strings.TrimPrefix(stderr, "go: ")
		}
		return nil, nil, errors.New(text)
	}
	byPath := make(map[string]*packages.Package)
	var module *packages.Module
	for _, pkg := range list {
		if strings.HasSuffix(pkg.ID, ".test") {
			continue // the program that go test generates
		}
		if len(pkg.Errors) > 0 && len(pkg.GoFiles) == 0 {
			return nil, nil, errors.New(pkg.Errors[0].Msg)
		}
		switch {
		case pkg.Module == nil:
			return nil, nil, fmt.Errorf("package %s belongs to no module: name packages of a module, such as ./... of its folder", pkg.PkgPath)
		case !pkg.Module.Main:
			return nil, nil, fmt.Errorf("package %s belongs to module %s, which is a dependency", pkg.PkgPath, pkg.Module.Path)
		}
		if module != nil && module.Dir != pkg.Module.Dir {
			return nil, nil, fmt.Errorf("the packages belong to several modules: %s and %s", module.Path, pkg.Module.Path)
		}
		module = pkg.Module
		if other := byPath[pkg.PkgPath]; other == nil || len(pkg.GoFiles) > len(other.GoFiles) {
			byPath[pkg.PkgPath] = pkg
		}
	}
	if module == nil {
		return nil, nil, fmt.Errorf("no packages match %s", strings.Join(cfg.Patterns, " "))
	}
	matched := slices.SortedFunc(maps.Values(byPath), func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	return matched, module, nil
}

// unseenFiles returns the Go files in a package's folder that are not in the package.
func unseenFiles(pkg *packages.Package) (files []string) {
	all, _ := filepath.Glob(filepath.Join(filepath.Dir(pkg.GoFiles[0]), "*.go")) // only a bad pattern is an error
	for _, file := range slices.Concat(all, pkg.IgnoredFiles) {
		if filepath.Ext(file) == ".go" && !slices.Contains(pkg.GoFiles, file) && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}
