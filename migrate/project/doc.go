// Package project rewrites the packages of a module together, with their tests:
// what `tickless migrate` does.
//
// # Usage
//
//	p, err := project.Load(ctx, project.Config{Dir: ".", Patterns: []string{"./..."}})
//	if err != nil {
//		return err
//	}
//	p.WriteReport(os.Stdout)
//	return p.Fix()
//
// # Guarantees
//
//   - A type is rewritten in all packages of the module that use it, or in none.
//   - Nothing is written before Fix, and nothing outside the files of the report. Fix
//     writes all of them or none.
//   - A file that gofmt would not have changed it does not change afterwards. Its lines
//     end as they did.
//   - Packages that do not compile are refused, if they were named. Others are left out,
//     and what they may use by its name.
//
// # Limits
//
// Files that the build leaves out, for other systems or tags, are not rewritten,
// and neither is what they may use by its name. Modules below the module's folder
// are other modules. The module's go.mod is not touched.
package project
