// Command mutants checks that tests detect mistakes. It makes each code change of
// list.txt, one at a time, and runs the tests listed with it. At least one of these tests
// must fail. No source file is written.
//
//	make mutants             # all of them; takes minutes
//	make mutants MUTANT=slab # those whose tests, file or function match
package main
