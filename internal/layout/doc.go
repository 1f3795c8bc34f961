// Package layout contains only tests. They check that the core's packages import one
// another in one direction, that the core needs few modules, and that the README's code
// compiles.
package layout
