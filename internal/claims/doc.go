// Command claims compares what every README.md, the pages of all folders named docs, the
// package comments of all modules and the comments of most packages' exported identifiers
// say with docs/claims.txt, which names what proves it.
//
// A claim is a sentence, an item of a list or a row of a table that has a number in it,
// in digits or words, or a word such as never or always, on pages also one such as nothing,
// cannot or survives, and every row of a table whose column is "promise". Code, and what
// make bench writes, are left out: benchmarks/report compares the latter with its results.
// For each claim docs/claims.txt has the file and the text, and below it, indented, one
// proof or more:
//
//	README.md: Starting one takes less than half the time.
//		results: full.md: start and stop, 1M pending, 1 proc (ns): ratio < 0.5
//		test: TestGuarantee01_NeverEarly
//
// These are the kinds of proofs:
//
//	test: NAME                       a test, fuzz target or example; a * at the end
//	                                 stands for any end; FOLDER: NAME where several
//	                                 folders have one of that name
//	measured: NAME                   a benchmark, in the same way, or a test that is one: it
//	                                 repeats the figure, and does not fail, whatever that
//	                                 is; so claims with no other proof are counted apart
//	stores: NAME                     a test of storetest, which every store runs
//	results: FILE: ROW: COLUMN RANGE a figure in a table, with < <= > >= = and a number,
//	                                 or NUMBER..NUMBER; a FILE without a folder is in
//	                                 benchmarks/results; COLUMN most RANGE takes the
//	                                 worst of all runs, where the table has that beside
//	                                 the median, and COLUMN/COLUMN RANGE what one is of
//	                                 the other
//	code: FILE: TEXT                 the file has this text in it
//	run: make TARGET ...             a command whose outcome the text reports
//	none: WHY                        there is nothing in it that could be false
//
// A claim that names its test or benchmark, in backquotes, needs no entry, unless it is a
// row of promises. The rows of docs/guarantees.md that internal/mutants reads have none
// either.
//
// The program fails, and says where, if a claim has no proof, if a proof does not hold,
// and if the text of a claim is not there any more. So who changes a claim looks at its
// proof again. After a change of the text alone, edit the same line of docs/claims.txt;
// make claims-update adds the claims that it lacks, each with a proof that is yet to be
// written.
package main
