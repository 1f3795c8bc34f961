// Package layout contains only tests. They check three things: the core's packages import
// one another in one direction, as docs/architecture.md draws it; the core needs few
// modules; the README's code compiles.
package layout
