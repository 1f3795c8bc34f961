package project

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/packages"

	"github.com/tickless/tickless/migrate"
)

// loader type-checks packages from source. Of imported packages it checks declarations only,
// so it needs no compiled packages.
type loader struct {
	fset         *token.FileSet
	dependencies map[*packages.Package]*types.Package
}

// packageImporter finds the packages that importer imports.
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

// load returns the declarations of a package. It ignores errors in the package: code that uses
// what is broken gets an error of its own.
func (l *loader) load(pkg *packages.Package) *types.Package {
	if loaded := l.dependencies[pkg]; loaded != nil {
		return loaded
	}
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		if f, _ := parser.ParseFile(l.fset, name, nil, parser.SkipObjectResolution); f != nil {
			files = append(files, f)
		}
	}
	conf := types.Config{
		Importer:         packageImporter{l, pkg},
		Sizes:            pkg.TypesSizes,
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Error:            func(error) {}, // go on
	}
	loaded, _ := conf.Check(pkg.PkgPath, l.fset, files, nil)
	l.dependencies[pkg] = loaded
	return loaded
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
	importer := packageImporter{l, pkg}
	conf := types.Config{Importer: importer, Sizes: pkg.TypesSizes, FakeImportC: true, Error: func(err error) {
		if typeErr, ok := err.(types.Error); ok && !typeErr.Soft {
			errs = append(errs, typeErr)
		}
	}}
	typesPkg, _ := conf.Check(pkg.PkgPath, l.fset, files, info) // errs has them all
	if len(errs) > 0 {
		return nil, errs
	}
	return &migrate.Package{Path: pkg.PkgPath, Files: files, Types: typesPkg, Info: info, Importer: importer, Sizes: pkg.TypesSizes}, nil
}
