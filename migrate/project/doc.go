// Package project rewrites the packages of a module together, with their tests.
// `tickless migrate` is built on it.
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
//   - Nothing is written before Fix. Fix writes all files of the report or none.
//   - A file that is formatted with gofmt stays so. Line endings do not change.
//   - A named package that does not compile is an error. Other packages that do
//     not compile are skipped, and what they may use by name does not change.
//
// # Limits
//
// Files that the build excludes, for other systems or tags, are not rewritten, and
// neither is what they may use by name. Nested modules are separate modules. The
// module's go.mod does not change.
package project
