// Command mutants applies each change of code that list.txt names, one at a time, and
// runs the tests that are listed with it: one of them must fail. The source is not
// touched: the changed file is laid over it with go test's -overlay.
//
//	make mutants             # all of them; takes minutes
//	make mutants MUTANT=slab # those whose tests, file or function match
package main
