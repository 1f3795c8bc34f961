package main

import (
	"go/types"
	"maps"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/lostcancel"

	"github.com/tickless/tickless/migrate"
)

// lostCancel reports contexts of package deadline whose cancel function is not called on
// all paths. It runs vet's check lostcancel with type information in which package context
// takes the place of package deadline.
var lostCancel = &analysis.Analyzer{
	Name:     "lostcancel",
	Doc:      lostcancel.Analyzer.Doc,
	URL:      lostcancel.Analyzer.URL,
	Requires: lostcancel.Analyzer.Requires,
	Run: func(pass *analysis.Pass) (any, error) {
		contextPackage := types.NewPackage("context", "context")
		changedInfo := *pass.TypesInfo
		changedInfo.Uses = maps.Clone(changedInfo.Uses)
		for id, obj := range changedInfo.Uses {
			if pn, ok := obj.(*types.PkgName); ok && pn.Imported().Path() == migrate.DeadlinePath {
				changedInfo.Uses[id] = types.NewPkgName(pn.Pos(), pn.Pkg(), pn.Name(), contextPackage)
			}
		}
		changedPkg := types.NewPackage(pass.Pkg.Path(), pass.Pkg.Name())
		changedPkg.SetImports(append(pass.Pkg.Imports(), contextPackage))
		changedPass := *pass
		changedPass.TypesInfo, changedPass.Pkg = &changedInfo, changedPkg
		return lostcancel.Analyzer.Run(&changedPass)
	},
}
