package purgatory_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A Partition is a key that requests wait for.
type Partition struct {
	Topic  string
	Number int
}

// A Log is the log of one partition, reduced to what these requests need.
type Log struct {
	mu   sync.Mutex
	end  int         // the end of the leader's copy
	acks map[int]int // the end of each follower's copy
}

func (l *Log) append(bytes int) (end int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end += bytes
	return l.end
}

func (l *Log) ack(follower, end int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks[follower] = end
}

func (l *Log) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// replicated reports whether every follower has copied the log up to end.
func (l *Log) replicated(end int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, acked := range l.acks {
		if acked < end {
			return false
		}
	}
	return true
}

// A Produce request is answered when all followers of its partitions have copied what it
// wrote.
type Produce struct {
	purgatory.Delayed[Partition]
	name string
	logs map[Partition]*Log
	ends map[Partition]int // up to where each partition must be copied
}

func (r *Produce) replicated() bool {
	for partition, end := range r.ends {
		if !r.logs[partition].replicated(end) {
			return false
		}
	}
	return true
}

func (r *Produce) TryComplete() bool { return r.replicated() }

func (r *Produce) OnComplete() {
	if r.replicated() {
		fmt.Println(r.name, "is acknowledged")
	} else {
		fmt.Println(r.name, "is answered with an error")
	}
}

func (r *Produce) OnExpiration() { fmt.Println(r.name, "has timed out") }

// A produce request that waits for acknowledgements, as Kafka's does with
// acks=all.
func Example_produce() {
	clk := timertest.NewClock(time.Now())
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline())) // timer.New() in a program
	defer s.Close()
	p := purgatory.New[Partition](s)

	a, b := Partition{"orders", 0}, Partition{"orders", 1}
	logs := map[Partition]*Log{
		a: {acks: map[int]int{2: 0, 3: 0}},
		b: {acks: map[int]int{2: 0}},
	}
	produce := func(name string, partitions ...Partition) {
		r := &Produce{name: name, logs: logs, ends: map[Partition]int{}}
		for _, partition := range partitions {
			r.ends[partition] = logs[partition].append(100)
		}
		done, err := p.CompleteOrWatch(r, 30*time.Second, partitions...)
		fmt.Println(name, "is complete:", done, err)
	}
	acknowledge := func(partition Partition, follower, end int) {
		logs[partition].ack(follower, end)
		p.CheckAndComplete(partition)
	}

	produce("first", a, b)
	produce("second", a)
	acknowledge(a, 2, 200)
	acknowledge(b, 2, 100)
	acknowledge(a, 3, 100)        // completes first, and half of what second needs
	clk.Advance(30 * time.Second) // follower 3 does not answer
	fmt.Println("waiting:", p.Len())

	// Output:
	// first is complete: false <nil>
	// second is complete: false <nil>
	// first is acknowledged
	// second is answered with an error
	// second has timed out
	// waiting: 0
}

// A Fetch request is answered when its partitions together have enough bytes. After the
// longest wait it is answered with the bytes available.
type Fetch struct {
	purgatory.Delayed[Partition]
	logs     map[Partition]*Log
	from     map[Partition]int // the position in each partition
	minBytes int
}

func (r *Fetch) bytes() (n int) {
	for partition, from := range r.from {
		n += r.logs[partition].length() - from
	}
	return n
}

func (r *Fetch) TryComplete() bool { return r.bytes() >= r.minBytes }
func (r *Fetch) OnComplete()       { fmt.Println("answered with", r.bytes(), "bytes") }
func (r *Fetch) OnExpiration()     { fmt.Println("after the longest wait") }

// A fetch that waits for bytes, as Kafka's does with fetch.min.bytes and
// fetch.max.wait.ms.
func Example_fetch() {
	clk := timertest.NewClock(time.Now())
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline())) // timer.New() in a program
	defer s.Close()
	p := purgatory.New[Partition](s)

	a, b := Partition{"orders", 0}, Partition{"orders", 1}
	logs := map[Partition]*Log{a: {}, b: {}}
	fetch := func(minBytes int) {
		r := &Fetch{logs: logs, minBytes: minBytes, from: map[Partition]int{}}
		for partition, log := range logs {
			r.from[partition] = log.length()
		}
		p.CompleteOrWatch(r, 500*time.Millisecond, a, b)
	}
	write := func(partition Partition, bytes int) {
		logs[partition].append(bytes)
		fmt.Println(bytes, "bytes written, completed:", p.CheckAndComplete(partition))
	}

	fetch(1000)
	write(a, 600)
	write(b, 500)
	fetch(1000)
	write(b, 10)
	clk.Advance(500 * time.Millisecond)

	// Output:
	// 600 bytes written, completed: 0
	// answered with 1100 bytes
	// 500 bytes written, completed: 1
	// 10 bytes written, completed: 0
	// answered with 10 bytes
	// after the longest wait
}

// The client has gone, and its answer is no longer needed.
func ExampleDelayed_ForceComplete() {
	s := timer.New()
	defer s.Close()
	p := purgatory.New[Partition](s)

	r := &Fetch{minBytes: 1}
	p.CompleteOrWatch(r, time.Minute, Partition{"orders", 0})
	fmt.Println("waiting:", p.Len())
	fmt.Println(r.ForceComplete(), r.ForceComplete())
	fmt.Println("waiting:", p.Len())

	// Output:
	// waiting: 1
	// answered with 0 bytes
	// true false
	// waiting: 0
}

// A partition moves to another broker. The requests that wait for it are answered at
// once.
func ExamplePurgatory_CancelForKey() {
	s := timer.New()
	defer s.Close()
	p := purgatory.New[Partition](s)

	a, b := Partition{"orders", 0}, Partition{"orders", 1}
	p.CompleteOrWatch(&Fetch{minBytes: 1}, time.Minute, a)
	p.CompleteOrWatch(&Fetch{minBytes: 1}, time.Minute, a, b)
	p.CompleteOrWatch(&Fetch{minBytes: 1}, time.Minute, b)
	for _, op := range p.CancelForKey(a) {
		fmt.Printf("%T has to ask elsewhere\n", op)
	}
	fmt.Println("waiting:", p.Len())

	// Output:
	// *purgatory_test.Fetch has to ask elsewhere
	// *purgatory_test.Fetch has to ask elsewhere
	// waiting: 1
}
