// Package benchmarks compares redisstore with asynq, on a redis-server that it starts
// for each measurement. `make bench MODE=redis` runs it.
//
//	go test -run '^$' -bench . -benchtime 1x
//
// runs a tenth of the quoted workload, as a test. TICKLESS_BENCH=long in the
// environment runs all of it. Ignore ns/op.
package benchmarks
