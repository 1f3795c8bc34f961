// Package project rewrites all packages of a module together, with their tests. The command
// `tickless migrate` uses it.
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
//   - A timer's type changes in all packages of the module that use the timer, or in none.
//   - Only Fix writes files. It writes all files of the report or none.
//   - A file that is formatted with gofmt stays so. Line endings do not change.
//   - If a package that the patterns match does not compile, Load returns an error. Other
//     packages that do not compile are skipped. Timers that they may use are not rewritten.
//
// # Limits
//
// Files that the build excludes, for other systems or tags, are not rewritten. Timers
// that these files may use are not rewritten either. Nested modules and go.mod do not
// change.
package project
