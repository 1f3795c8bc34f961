// Package benchmarks measures redisstore beside asynq, on a redis-server that it
// starts for each measurement. `make bench MODE=redis` runs it.
//
//	go test -run '^$' -bench . -benchtime 1x
//
// measures a tenth of what is quoted, to see that it works. With TICKLESS_BENCH=long
// in the environment it measures all of it. ns/op says nothing here.
package benchmarks
