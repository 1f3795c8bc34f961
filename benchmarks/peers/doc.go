// Package peers has other timer libraries implement [benchmarks.Impl], so that
// they run the workloads of package benchmarks beside Tickless and the
// baselines.
//
//	go test -run '^$' -bench . -count 10 | tee out.txt
//	benchstat -col /impl out.txt
//
// Each library is set up to be about as precise as package time, where it lets
// one choose: a tick of a millisecond. The last two of these have one level of
// slots and do not make up for ticks that they have missed, so that with that
// tick they fall ever further behind on a machine that is idle; they get a tick
// of 10 ms, and 8,192 slots, so that a turn takes 82 s and timers of some minutes
// have few rounds to wait.
//
//   - RussellLuo/timingwheel is Kafka's hierarchical wheel; a lock a bucket; a
//     goroutine a callback.
//   - antlabs/timer is the wheel of old Linux kernels with a tick of 10 ms; a
//     lock a slot; a goroutine a callback.
//   - zeromicro/go-zero has one goroutine that does all work, which channels
//     bring to it. What is removed is only marked, and stays in memory until its
//     slot's turn comes. A goroutine a slot runs the callbacks of a tick.
//   - xiaoxuxiansheng/timewheel is of the same kind, with string keys; a
//     goroutine a callback.
//
// The last two return when their work is queued; the workloads wait for the
// queue at the end. (Their channels have no buffer, so what waits there is at
// most one request a caller.) Keys are made before anything is measured.
package peers
