// Package project rewrites the packages of a module, with their tests. The command
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
//   - A timer's type changes everywhere or nowhere: see package migrate.
//   - Only Fix writes files. It writes all files of the report or none, and none through a
//     symbolic link.
//   - A file that is formatted with gofmt still is. Line endings do not change.
//   - If a package that starts timers does not compile, Load returns an error.
//
// # Limits
//
// Files that the build excludes, for other systems or tags, are not rewritten. Timers
// that these files may use are not rewritten either. Nested modules, links
// and go.mod do not change.
package project
