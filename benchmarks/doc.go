// Package benchmarks holds the workloads by which implementations of timers are
// compared: package time, two textbook designs, and Tickless. Package peers adds
// other libraries, which run the very same workloads, and has the Benchmark
// functions. The module stands beside the core, whose users need none of it.
//
// # Usage
//
//	go test -run '^$' -bench . ./peers
//	go test -run '^$' -bench 'Churn/impl=(time|tickless)/n=1M' -count 10 ./peers > out.txt
//	benchstat -col /impl out.txt
//
// The part of a name such as Churn/impl=tickless/n=1M/p=2 says how many timers
// are pending (n) and on how many procs the workload runs (p, GOMAXPROCS). The
// number that the testing package hangs on the name is the number of procs the
// program was started with, not p.
//
// # Fairness
//
//   - Every implementation keeps its own handles, by slot, in memory that is
//     allocated before anything is measured. That memory counts for nobody.
//   - Delays are drawn before, from a fixed seed; callbacks are made before.
//   - Timers are started from all the procs that the workload runs on, as a
//     program would do it, and not from one.
//   - The garbage collector runs as always; what it costs is in the figures.
package benchmarks
