package main

import (
	"go/types"
	"maps"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/lostcancel"

	"github.com/tickless/tickless/migrate"
)

// lostCancel is vet's lostcancel check for package deadline: it reports contexts whose
// cancel function is not called on all paths. vet's own check knows only package
// context, by its path, so lostCancel presents deadline to it under that path.
var lostCancel = &analysis.Analyzer{
	Name:     "lostcancel",
	Doc:      lostcancel.Analyzer.Doc,
	URL:      lostcancel.Analyzer.URL,
	Requires: lostcancel.Analyzer.Requires,
	Run: func(pass *analysis.Pass) (any, error) {
		standard := types.NewPackage("context", "context")
		info := *pass.TypesInfo
		info.Uses = maps.Clone(info.Uses)
		for id, obj := range info.Uses {
			if pn, ok := obj.(*types.PkgName); ok && pn.Imported().Path() == migrate.DeadlinePath {
				info.Uses[id] = types.NewPkgName(pn.Pos(), pn.Pkg(), pn.Name(), standard)
			}
		}
		pkg := types.NewPackage(pass.Pkg.Path(), pass.Pkg.Name())
		pkg.SetImports(append(pass.Pkg.Imports(), standard))
		twin := *pass
		twin.TypesInfo, twin.Pkg = &info, pkg
		return lostcancel.Analyzer.Run(&twin)
	},
}
