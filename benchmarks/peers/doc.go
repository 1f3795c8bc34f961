// Package peers implements [benchmarks.Impl] with other timer libraries, so that they
// run the workloads of package benchmarks beside Tickless and the baselines.
//
//	go test -run '^$' -bench . -count 10 | tee out.txt
//	benchstat -col /impl out.txt
//
// Each library is configured to be about as precise as package time, with a tick of a
// millisecond if it can be chosen. The last two libraries below have one level of slots
// and do not make up for missed ticks. With that tick they fall ever further behind
// even on an idle machine, so they get a tick of 10 ms, and 8,192 slots: a rotation
// takes 82 s, and timers of some minutes take few rotations.
//
//   - RussellLuo/timingwheel is Kafka's hierarchical wheel, with a lock for each bucket and
//     a goroutine for each callback.
//   - antlabs/timer is the wheel of old Linux kernels with a tick of 10 ms, a lock for each
//     slot and a goroutine for each callback.
//   - zeromicro/go-zero has one goroutine that does all work, which it receives through
//     channels. A removed timer is only marked, and stays in memory until its slot is due.
//     One goroutine for each slot runs the callbacks of a tick.
//   - xiaoxuxiansheng/timewheel has the same design, with string keys and a goroutine for
//     each callback.
//
// The calls of the last two return when their work is queued; the workloads wait for
// the queue at the end. (Their channels are unbuffered, so at most one request of each
// caller is waiting.) Keys are made before the measurement.
package peers
