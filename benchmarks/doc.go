// Package benchmarks contains workloads that compare implementations of timers: package
// time, a binary heap, and Tickless. Package peers adds other libraries and contains the
// Benchmark functions. This is a separate module, so that programs that use Tickless do
// not get its dependencies.
//
// # Usage
//
//	go test -run '^$' -bench . ./peers
//	go test -run '^$' -bench 'Churn/impl=(time|tickless)/n=1M' -count 10 ./peers > out.txt
//	benchstat -col /impl out.txt
//
// In a name such as Churn/impl=tickless/n=1M/p=2, n is the number of pending timers and p
// is GOMAXPROCS. Ignore the number that the testing package appends to the name.
//
// # Fairness
//
//   - Handles, delays and most callbacks are made before the measurement. Only Heartbeats
//     counts the memory of handles.
//   - Delays are random numbers with the same seed for every implementation.
//   - The garbage collector runs as usual, and its cost is part of the figures.
package benchmarks
