// Package layout holds tests only. They check that the packages of each module
// import one another in one direction, that the core needs few modules, and that the
// README's code compiles. docs/architecture.md draws the order.
package layout
