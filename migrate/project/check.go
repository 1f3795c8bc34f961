package project

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"runtime"
	"sync"

	"golang.org/x/tools/go/packages"

	"github.com/tickless/tickless/migrate"
)

// loader type-checks packages from source. Of imported packages it checks declarations only,
// so it needs no compiled packages.
type loader struct {
	fset *token.FileSet

	mu           sync.Mutex
	dependencies map[*packages.Package]*dependency
}

// dependency is an imported package.
type dependency struct {
	once sync.Once
	pkg  *types.Package
}

// parsing limits the number of files that are parsed at a time.
var parsing = make(chan struct{}, 2*runtime.GOMAXPROCS(0))

// packageImporter finds the packages that importer imports, and those that migrate asks
// for because the rewritten package needs them.
type packageImporter struct {
	l        *loader
	importer *packages.Package
}

func (i packageImporter) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	pkg := i.importer.Imports[path]
	if pkg == nil {
		return nil, fmt.Errorf("package %s is not imported", path)
	}
	return i.l.load(pkg), nil
}

// load returns the declarations of a package. Errors in it do not matter: who uses what is
// broken gets an error.
func (l *loader) load(pkg *packages.Package) *types.Package {
	l.mu.Lock()
	d := l.dependencies[pkg]
	if d == nil {
		d = &dependency{}
		l.dependencies[pkg] = d
	}
	l.mu.Unlock()
	d.once.Do(func() {
		var wg sync.WaitGroup
		for path, dep := range pkg.Imports {
			if path != "unsafe" {
				wg.Go(func() { l.load(dep) })
			}
		}
		files := make([]*ast.File, len(pkg.GoFiles))
		for i, name := range pkg.GoFiles {
			wg.Go(func() {
				parsing <- struct{}{}
				defer func() { <-parsing }()
				files[i], _ = parser.ParseFile(l.fset, name, nil, parser.SkipObjectResolution)
			})
		}
		wg.Wait()
		parsed := files[:0]
		for _, f := range files {
			if f != nil {
				parsed = append(parsed, f)
			}
		}
		conf := types.Config{
			Importer:         packageImporter{l, pkg},
			Sizes:            pkg.TypesSizes,
			IgnoreFuncBodies: true,
			FakeImportC:      true,
			Error:            func(error) {}, // go on
		}
		parsing <- struct{}{}
		defer func() { <-parsing }()
		d.pkg, _ = conf.Check(pkg.PkgPath, l.fset, parsed, nil)
	})
	return d.pkg
}

// check type-checks a package to analyze. If it does not compile, check returns the errors.
func (l *loader) check(pkg *packages.Package, files []*ast.File) (*migrate.Package, []types.Error) {
	info := &types.Info{
		Types:      make(map[ast.Expr]types.TypeAndValue),
		Defs:       make(map[*ast.Ident]types.Object),
		Uses:       make(map[*ast.Ident]types.Object),
		Implicits:  make(map[ast.Node]types.Object),
		Instances:  make(map[*ast.Ident]types.Instance),
		Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}
	var errs []types.Error
	addError := func(err error) {
		if typeErr, ok := err.(types.Error); ok && !typeErr.Soft {
			errs = append(errs, typeErr)
		}
	}
	var wg sync.WaitGroup
	for path, dep := range pkg.Imports {
		if path != "unsafe" {
			wg.Go(func() { l.load(dep) })
		}
	}
	wg.Wait()
	importer := packageImporter{l, pkg}
	conf := types.Config{Importer: importer, Sizes: pkg.TypesSizes, FakeImportC: true, Error: addError}
	typesPkg, _ := conf.Check(pkg.PkgPath, l.fset, files, info) // addError has them all
	if len(errs) > 0 {
		return nil, errs
	}
	return &migrate.Package{Path: pkg.PkgPath, Files: files, Types: typesPkg, Info: info, Importer: importer, Sizes: pkg.TypesSizes}, nil
}
