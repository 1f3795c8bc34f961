package project

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"

	"github.com/tickless/tickless/migrate"
)

// Config says which packages to load and what to rewrite.
type Config struct {
	// Dir is the folder to run the go command in. Empty means the current folder.
	Dir string
	// Patterns are the packages to rewrite, written as for go build. Empty means the
	// package in Dir. Other packages of the module do not change.
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
	// Warnings are texts about skipped packages, and about code that may behave
	// differently after the rewrite.
	Warnings []string

	changes []Change

	mu      sync.Mutex
	sources map[string][]byte // by file name, as they were parsed
}

// parseFile parses a file and keeps its source for p.source, because the file on disk may
// change meanwhile.
func (p *Project) parseFile(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	p.mu.Lock()
	p.sources[name] = src
	p.mu.Unlock()
	return parser.ParseFile(fset, name, src, parser.AllErrors|parser.ParseComments)
}

// readSource returns a file's contents: as they were parsed, or else from disk.
func (p *Project) readSource(name string) ([]byte, error) {
	p.mu.Lock()
	src, ok := p.sources[name]
	p.mu.Unlock()
	if ok {
		return src, nil
	}
	return os.ReadFile(name)
}

// Load loads and analyzes the module that contains the packages to rewrite. It runs the go
// command, which compiles the module's dependencies.
func Load(ctx context.Context, cfg Config) (*Project, error) {
	cfg, err := cfg.moveModFileFlag(ctx)
	if err != nil {
		return nil, err
	}
	matchedPaths, module, err := matchPatterns(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p := &Project{Module: module.Path, Dir: module.Dir, sources: make(map[string][]byte)}

	pc := cfg.packagesConfig(ctx, packages.NeedName|packages.NeedFiles|packages.NeedCompiledGoFiles|packages.NeedImports|
		packages.NeedTypes|packages.NeedTypesSizes|packages.NeedSyntax|packages.NeedTypesInfo|packages.NeedModule)
	pc.Dir = module.Dir
	pc.Fset = token.NewFileSet()
	pc.ParseFile = p.parseFile
	loaded, err := packages.Load(pc, "./...")
	if err != nil {
		return nil, err
	}
	loaded, broken := p.splitBrokenPackages(loaded, matchedPaths)
	if err := compileErrors(loaded, module.Dir); err != nil {
		return nil, err
	}
	opts := cfg.Options
	if opts.ReadFile == nil {
		opts.ReadFile = p.readSource
	}
	if opts.Bubbles, err = synctestImporters(ctx, cfg, module.Dir); err != nil {
		return nil, err
	}
	other, err := unloadedGoFiles(module.Dir, slices.Concat(loaded, broken))
	if err != nil {
		return nil, err
	}
	opts.Unseen = slices.Concat(opts.Unseen, other, goFilesOf(broken))
	p.Report = migrate.Analyze(pc.Fset, convertPackages(loaded, matchedPaths), opts)
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

// splitBrokenPackages returns the packages to analyze (good) and those to skip (broken).
// A broken package does not compile, and no pattern matches it. Each gets a warning.
func (p *Project) splitBrokenPackages(loaded []*packages.Package, matched map[string]bool) (good, broken []*packages.Package) {
	warnedPaths := make(map[string]bool)
	for _, pkg := range loaded {
		if isTestMain(pkg) {
			continue // the packages that it imports are in loaded too
		}
		if !pkg.IllTyped && len(pkg.Errors) == 0 || matched[withoutTestSuffix(pkg.PkgPath)] {
			good = append(good, pkg)
			continue
		}
		broken = append(broken, pkg)
		pkgPath := withoutTestSuffix(pkg.PkgPath)
		for _, e := range pkg.Errors {
			if !warnedPaths[pkgPath] && !strings.HasPrefix(e.Msg, "# ") { // not the compiler's copy
				warnedPaths[pkgPath] = true
				p.Warnings = append(p.Warnings, fmt.Sprintf("package %s is skipped because it does not compile: %s", pkgPath, errorText(e, p.Dir)))
			}
		}
	}
	return good, broken
}

// goFilesOf returns the Go files of packages, including those that the build excludes.
func goFilesOf(pkgs []*packages.Package) (files []string) {
	for _, pkg := range pkgs {
		for _, file := range slices.Concat(pkg.GoFiles, pkg.IgnoredFiles) {
			if filepath.Ext(file) == ".go" && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// synctestImporters returns the packages of other modules that import testing/synctest,
// directly or through others. They may run callbacks inside a bubble.
func synctestImporters(ctx context.Context, cfg Config, dir string) (map[string]bool, error) {
	pc := cfg.packagesConfig(ctx, packages.NeedName|packages.NeedImports|packages.NeedDeps|packages.NeedModule)
	pc.Dir = dir
	pkgs, err := packages.Load(pc, "./...")
	if err != nil {
		return nil, err
	}
	importers := make(map[string]bool)
	packages.Visit(pkgs, nil, func(pkg *packages.Package) { // visits imported packages first
		if pkg.Module == nil || pkg.Module.Main {
			return
		}
		for path := range pkg.Imports {
			if path == "testing/synctest" || importers[path] {
				importers[pkg.PkgPath] = true
			}
		}
	})
	return importers, nil
}

// unloadedGoFiles returns the Go files in those folders of the module where the build
// excludes all Go files.
func unloadedGoFiles(root string, loaded []*packages.Package) ([]string, error) {
	loadedFolders := make(map[string]bool)
	for _, pkg := range loaded {
		for _, file := range slices.Concat(pkg.GoFiles, pkg.IgnoredFiles) {
			loadedFolders[filepath.Dir(file)] = true
		}
	}
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			folderName := d.Name()
			if path == root {
				return nil
			}
			if strings.HasPrefix(folderName, ".") || strings.HasPrefix(folderName, "_") || folderName == "testdata" || folderName == "vendor" {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return fs.SkipDir // another module
			}
			return nil
		}
		if filepath.Ext(path) == ".go" && !loadedFolders[filepath.Dir(path)] {
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// matchPatterns returns the paths of the packages that the patterns match, and their
// module.
func matchPatterns(ctx context.Context, cfg Config) (map[string]bool, *packages.Module, error) {
	if err := cfg.validate(); err != nil {
		return nil, nil, err
	}
	list, err := packages.Load(cfg.packagesConfig(ctx, packages.NeedName|packages.NeedModule|packages.NeedFiles), cfg.Patterns...)
	if err != nil {
		return nil, nil, cfg.readableError(ctx, err)
	}
	matchedPaths := make(map[string]bool)
	var module *packages.Module
	for _, pkg := range list {
		if isTestMain(pkg) {
			continue
		}
		if len(pkg.Errors) > 0 {
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
		matchedPaths[withoutTestSuffix(pkg.PkgPath)] = true
	}
	if module == nil {
		return nil, nil, fmt.Errorf("no packages match %s", strings.Join(cfg.Patterns, " "))
	}
	return matchedPaths, module, nil
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

// withoutTestSuffix returns path without the suffix _test of an external test package.
func withoutTestSuffix(path string) string { return strings.TrimSuffix(path, "_test") }

// isTestMain reports whether go test generates the package, to run a package's tests.
func isTestMain(pkg *packages.Package) bool { return strings.HasSuffix(pkg.ID, ".test") }

// convertPackages converts loaded packages for migrate.Analyze. A package may be loaded
// twice: then the variant with its tests is used.
func convertPackages(loaded []*packages.Package, matched map[string]bool) []*migrate.Package {
	variantByPath := make(map[string]*packages.Package)
	for _, pkg := range loaded {
		if isTestMain(pkg) || pkg.Types == nil {
			continue
		}
		if b := variantByPath[pkg.PkgPath]; b == nil || len(pkg.Syntax) > len(b.Syntax) {
			variantByPath[pkg.PkgPath] = pkg
		}
	}
	var pkgs []*migrate.Package
	for path, pkg := range variantByPath {
		unseenFiles := slices.DeleteFunc(slices.Clone(pkg.IgnoredFiles), func(name string) bool { return filepath.Ext(name) != ".go" })
		pkgs = append(pkgs, &migrate.Package{
			Path:      path,
			Files:     pkg.Syntax,
			Types:     pkg.Types,
			Info:      pkg.TypesInfo,
			Unseen:    unseenFiles,
			Untouched: !matched[withoutTestSuffix(path)],
		})
	}
	slices.SortFunc(pkgs, func(a, b *migrate.Package) int { return strings.Compare(a.Path, b.Path) })
	return pkgs
}
