// Command mutants applies each change of code that docs/guarantees.md lists, one at a
// time, and runs the tests that are listed beside it: one of them must fail. The source
// is not touched: the changed file is laid over it with go test's -overlay.
//
//	make mutants             # all of them; takes minutes
//	make mutants MUTANT=slab # those whose line of the page matches
package main
