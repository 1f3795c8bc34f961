// Command mutants applies each code change that list.txt names, one at a time, and runs
// the tests that are listed with it. One of the tests must fail. Source files are not
// changed: go test's -overlay replaces the file.
//
//	make mutants             # all of them; takes minutes
//	make mutants MUTANT=slab # those whose tests, file or function match
package main
