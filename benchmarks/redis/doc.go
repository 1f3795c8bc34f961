// Package benchmarks measures redisstore beside asynq, on a redis-server that it
// starts for each measurement.
//
//	go test -run '^$' -bench . -benchtime 1x
//
// measures a tenth of what is quoted, to see that it works. With TICKLESS_BENCH=long
// in the environment it measures all of it, which takes some minutes and wants the
// machine for itself. What is measured comes as metrics; ns/op says nothing here.
//
// It is a module of its own, so that asynq is none of redisstore's dependencies.
package benchmarks
