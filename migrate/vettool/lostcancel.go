package main

import (
	"go/types"
	"maps"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/lostcancel"

	"github.com/tickless/tickless/migrate"
)

// lostCancel reports contexts of package deadline whose cancel function is not called on
// all paths. It runs vet's check lostcancel, to which package deadline looks like package
// context.
var lostCancel = &analysis.Analyzer{
	Name:     "lostcancel",
	Doc:      lostcancel.Analyzer.Doc,
	URL:      lostcancel.Analyzer.URL,
	Requires: lostcancel.Analyzer.Requires,
	Run: func(pass *analysis.Pass) (any, error) {
		contextPackage := types.NewPackage("context", "context")
		info := *pass.TypesInfo
		info.Uses = maps.Clone(info.Uses)
		for id, obj := range info.Uses {
			if pn, ok := obj.(*types.PkgName); ok && pn.Imported().Path() == migrate.DeadlinePath {
				info.Uses[id] = types.NewPkgName(pn.Pos(), pn.Pkg(), pn.Name(), contextPackage)
			}
		}
		pkg := types.NewPackage(pass.Pkg.Path(), pass.Pkg.Name())
		pkg.SetImports(append(pass.Pkg.Imports(), contextPackage))
		changedPass := *pass
		changedPass.TypesInfo, changedPass.Pkg = &info, pkg
		return lostcancel.Analyzer.Run(&changedPass)
	},
}
