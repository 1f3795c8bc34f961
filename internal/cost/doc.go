// Package cost counts what operations cost, and sees how that grows.
//
// The unit is a statement of Go that is executed. The go command can build a program
// that counts these, for go test -cover; [Measure] builds one so, and the program has
// each operation executed on something small and on something large ([Main]). The counts
// are the same on every machine, so that a test of a promise such as O(1) needs no time.
//
// Only statements of the packages that are named are counted: not those of the standard
// library, nor what the runtime does as one, such as copying memory or looking a key up
// in a map.
package cost
