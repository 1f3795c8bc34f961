// Package benchmarks contains the workloads that compare implementations of timers:
// package time, two textbook designs, and Tickless. Package peers adds other libraries,
// which run the same workloads, and has the Benchmark functions. This is a separate
// module, so that users of the core do not get its dependencies.
//
// # Usage
//
//	go test -run '^$' -bench . ./peers
//	go test -run '^$' -bench 'Churn/impl=(time|tickless)/n=1M' -count 10 ./peers > out.txt
//	benchstat -col /impl out.txt
//
// A name such as Churn/impl=tickless/n=1M/p=2 says how many timers are pending (n) and
// on how many procs the workload runs (p, GOMAXPROCS). The number that the testing
// package appends is the number of procs at the program's start, not p.
//
// # Fairness
//
//   - Every implementation keeps its own handles, by slot. Their memory is allocated before the
//     measurement and not counted.
//   - Delays are generated before the measurement, from a fixed seed; callbacks are allocated
//     before it.
//   - All procs of a workload start timers, as in a program, not only one.
//   - The garbage collector runs as usual, and its cost is part of the figures.
package benchmarks
