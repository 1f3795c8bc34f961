// Package benchmarks compares redisstore with asynq. It starts a redis-server for each
// measurement. `make bench MODE=redis` runs the whole workload. The following runs a tenth:
//
//	go test -run '^$' -bench . -benchtime 1x
package benchmarks
