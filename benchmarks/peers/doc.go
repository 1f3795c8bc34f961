// Package peers runs the workloads of package benchmarks with other timer libraries too.
//
//	go test -run '^$' -bench . -count 10 | tee out.txt
//	benchstat -col /impl out.txt
//
// # The libraries
//
//   - RussellLuo/timingwheel: the hierarchical wheel of Kafka, here with a tick of 1 ms. It
//     has a lock per bucket and starts a goroutine per callback.
//   - antlabs/timer: the wheel of old Linux kernels, with a fixed tick of 10 ms. It has a
//     lock per slot and starts a goroutine per callback.
//   - zeromicro/go-zero: a wheel with one level. One goroutine does all its work, which it
//     receives through channels. A removed timer stays in memory until its slot is due.
//     All callbacks of a tick run on one goroutine.
//   - xiaoxuxiansheng/timewheel: the same design, with string keys and a goroutine per
//     callback.
//
// The two wheels with one level never catch up after a missed tick. So they get a tick of
// 10 ms instead of 1 ms, and 8,192 slots. Their calls return before the work is done. The
// workloads wait for it at the end.
package peers
