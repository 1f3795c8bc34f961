package project

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
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

	modFile string // the absolute path of -modfile in GOFLAGS, or empty
}

// A Project is the result of analyzing a module.
type Project struct {
	// Module is the module's path, Dir its folder.
	Module, Dir string
	// Requires says whether the module already requires Tickless.
	Requires bool
	Report   *migrate.Report
	// Warnings are texts about code that may behave differently after the rewrite.
	Warnings []string

	changes []Change
	sources map[string][]byte // by file name, as they were parsed
}

// Load analyzes the packages to rewrite, one by one. It compiles nothing: it type-checks the
// packages that start timers, and the declarations of those that they import.
func Load(ctx context.Context, cfg Config) (*Project, error) {
	cfg, err := cfg.moveModFileFlag(ctx)
	if err != nil {
		return nil, err
	}
	matched, module, err := matchPatterns(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p := &Project{Module: module.Path, Dir: module.Dir, Report: &migrate.Report{}, sources: make(map[string][]byte)}
	opts := cfg.Options
	opts.ReadFile = p.readSource
	l := &loader{fset: token.NewFileSet(), dependencies: make(map[*packages.Package]*dependency)}
	var problems compileErrors
	for _, pkg := range matched {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		files, fileErrors := p.parse(l.fset, pkg, cfg.ReadFile)
		if !p.mayRewrite(l.fset, pkg, files, opts) {
			continue
		}
		problems.add(pkg, fileErrors)
		if problems.any() {
			continue
		}
		checked, errs := l.check(pkg, files)
		if len(errs) > 0 {
			problems.addTypes(errs)
			continue
		}
		checked.Unseen = unseenFiles(pkg)
		checked.Fixed = p.fixedFiles(pkg.GoFiles)
		p.Report.Add(migrate.Analyze(l.fset, checked, opts))
	}
	if err := problems.err(module.Dir); err != nil {
		return nil, err
	}
	if p.Requires, err = requiresTickless(module.GoMod); err != nil {
		return nil, err
	}
	if err := p.computeChanges(); err != nil || len(p.changes) == 0 {
		return p, err
	}
	for _, w := range p.Report.Warnings {
		p.Warnings = append(p.Warnings, p.positionText(w.Pos)+": "+w.Text)
	}
	if text := goVersionWarning(module.GoVersion); text != "" && !p.Requires {
		p.Warnings = append(p.Warnings, text)
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

// mayRewrite reports whether a package has call sites to analyze. If it has some in tests
// only, and the tests stay as they are, mayRewrite counts them.
func (p *Project) mayRewrite(fset *token.FileSet, pkg *packages.Package, files []*ast.File, opts migrate.Options) bool {
	sites, testSites := 0, 0
	var leakCheckPos token.Pos
	for _, f := range files {
		n, pos := migrate.Scan(f)
		if strings.HasSuffix(fset.File(f.FileStart).Name(), "_test.go") {
			testSites += n
			if pos.IsValid() && pos != f.Package { // goleak waits
				leakCheckPos = pos
			}
		} else {
			sites += n
		}
	}
	if sites > 0 || testSites > 0 && opts.Tests {
		return true
	}
	p.Report.Muted += testSites
	if leakCheckPos.IsValid() {
		p.Report.Warnings = append(p.Report.Warnings, migrate.Reason{Text: migrate.WarningGoroutineCount, Pos: fset.Position(leakCheckPos)})
	}
	return false
}

func (cfg Config) packagesConfig(ctx context.Context, mode packages.LoadMode) *packages.Config {
	pc := &packages.Config{Context: ctx, Mode: mode, Dir: cfg.Dir, Env: cfg.Env, Tests: true}
	if cfg.Tags != "" {
		pc.BuildFlags = append(pc.BuildFlags, "-tags="+cfg.Tags)
	}
	if cfg.modFile != "" {
		pc.BuildFlags = append(pc.BuildFlags, "-modfile="+cfg.modFile)
	}
	return pc
}

// moveModFileFlag moves the flag -modfile from GOFLAGS to cfg.modFile. The go commands that
// go/packages runs may refuse it in GOFLAGS, or look for the file in the wrong folder.
func (cfg Config) moveModFileFlag(ctx context.Context) (Config, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOFLAGS")
	cmd.Dir, cmd.Env = cfg.Dir, cfg.Env
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "-modfile=") {
		return cfg, nil // if the go command fails, matchPatterns reports why
	}
	var otherFlags []string
	for _, flag := range strings.Fields(string(out)) {
		file, ok := strings.CutPrefix(strings.TrimLeft(flag, "-"), "modfile=")
		if !ok {
			otherFlags = append(otherFlags, flag)
			continue
		}
		if cfg.modFile = file; !filepath.IsAbs(file) {
			if cfg.modFile, err = filepath.Abs(filepath.Join(cfg.Dir, file)); err != nil {
				return cfg, err
			}
		}
	}
	if cfg.Env == nil {
		cfg.Env = os.Environ()
	}
	cfg.Env = append(slices.Clip(cfg.Env), "GOFLAGS="+strings.Join(otherFlags, " "))
	return cfg, nil
}

// matchPatterns returns the packages that the patterns match, sorted by path, and their
// module. Of a package with and without its tests, it returns the former.
func matchPatterns(ctx context.Context, cfg Config) ([]*packages.Package, *packages.Module, error) {
	if err := cfg.validate(); err != nil {
		return nil, nil, err
	}
	mode := packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule | packages.NeedTypesSizes
	list, err := packages.Load(cfg.packagesConfig(ctx, mode), cfg.Patterns...)
	if err != nil {
		return nil, nil, cfg.readableError(ctx, err)
	}
	byPath := make(map[string]*packages.Package)
	var module *packages.Module
	for _, pkg := range list {
		if strings.HasSuffix(pkg.ID, ".test") {
			continue // the program that go test generates
		}
		if len(pkg.Errors) > 0 && len(pkg.GoFiles) == 0 {
			return nil, nil, cfg.readableError(ctx, errors.New(errorText(pkg.Errors[0], "")))
		}
		switch {
		case pkg.Module == nil:
			return nil, nil, fmt.Errorf("package %s belongs to the standard library", pkg.PkgPath)
		case !pkg.Module.Main:
			return nil, nil, fmt.Errorf("package %s belongs to module %s, which is a dependency", pkg.PkgPath, pkg.Module.Path)
		}
		if module != nil && module.Dir != pkg.Module.Dir {
			return nil, nil, fmt.Errorf("%w: %s and %s", ErrSeveralModules, module.Path, pkg.Module.Path)
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

// requiresTickless reports whether a go.mod file requires Tickless.
func requiresTickless(file string) (bool, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	mod, err := modfile.ParseLax(file, src, nil)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool {
		return strings.HasPrefix(migrate.TimerPath, r.Mod.Path+"/")
	}), nil
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
