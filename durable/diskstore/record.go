package diskstore

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Values begin with their version. Numbers are varints, and strings have their length
// in front.
const recordVersion = 1

// A writer appends to a value.
type writer struct{ b []byte }

func (w *writer) byte(x byte)       { w.b = append(w.b, x) }
func (w *writer) uint(x uint64)     { w.b = binary.AppendUvarint(w.b, x) }
func (w *writer) int(x int64)       { w.b = binary.AppendVarint(w.b, x) }
func (w *writer) time(t store.Time) { w.int(int64(t)) }

func (w *writer) string(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) bytes(x []byte) {
	w.uint(uint64(len(x)))
	w.b = append(w.b, x...)
}

// flags appends up to eight of them.
func (w *writer) flags(x ...bool) {
	var f byte
	for i, on := range x {
		if on {
			f |= 1 << i
		}
	}
	w.byte(f)
}

// A reader reads a value. It returns zeros once it is bad.
type reader struct {
	b   []byte
	bad bool
}

// read begins with a value.
func read(b []byte) *reader {
	r := &reader{b: b}
	if r.byte() != recordVersion {
		r.bad = true
	}
	return r
}

func (r *reader) byte() byte {
	if r.bad || len(r.b) == 0 {
		r.bad = true
		return 0
	}
	x := r.b[0]
	r.b = r.b[1:]
	return x
}

func (r *reader) uint() uint64 {
	x, n := binary.Uvarint(r.b)
	r.skip(n)
	if r.bad {
		return 0
	}
	return x
}

func (r *reader) int() int64 {
	x, n := binary.Varint(r.b)
	r.skip(n)
	if r.bad {
		return 0
	}
	return x
}

func (r *reader) skip(n int) {
	if r.bad || n <= 0 {
		r.bad = true
		return
	}
	r.b = r.b[n:]
}

// count is a number from 0 to most.
func (r *reader) count(most int) int {
	x := r.uint()
	if x > uint64(most) {
		r.bad = true
		return 0
	}
	return int(x)
}

func (r *reader) time() store.Time {
	t := store.Time(r.int())
	if t < 0 || t > store.Farthest {
		r.bad = true
		return 0
	}
	return t
}

func (r *reader) string() string {
	n := r.count(len(r.b))
	if r.bad || n > len(r.b) {
		r.bad = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) flags(x ...*bool) {
	f := r.byte()
	for i := range x {
		*x[i] = f&(1<<i) != 0
	}
	if f>>len(x) != 0 {
		r.bad = true
	}
}

// end returns an error unless the value was read to its end.
func (r *reader) end(what string, key []byte) error {
	if r.bad || len(r.b) > 0 {
		return damaged("the %s of the key %q cannot be read", what, key)
	}
	return nil
}

// maxCount is the largest count that is taken for one.
const maxCount = math.MaxInt32

// appendEntry appends a task that is Pending or Dead.
func appendEntry(b []byte, e *store.Entry, kind uint32) []byte {
	w := writer{append(b, recordVersion, byte(e.State))}
	w.uint(uint64(kind))
	w.time(e.At)
	w.time(e.Due)
	w.uint(uint64(e.Attempts))
	w.uint(uint64(e.Crashes))
	w.uint(uint64(e.Runs))
	w.uint(uint64(len(e.Failures)))
	for _, f := range e.Failures {
		w.uint(uint64(f.Attempt))
		w.time(f.Time)
		w.string(f.Text)
	}
	return append(w.b, e.Record...)
}

// readEntry reads what appendEntry has appended, all but the names of the kind.
func readEntry(key, value []byte, e *store.Entry) (kind uint32, err error) {
	r := read(value)
	if e.State = store.State(r.byte()); e.State != store.Pending && e.State != store.Dead {
		r.bad = true
	}
	kind = uint32(r.count(maxCount))
	e.At, e.Due = r.time(), r.time()
	e.Attempts, e.Crashes, e.Runs = r.count(maxCount), r.count(maxCount), r.count(maxCount)
	e.Failures = nil
	if n := r.count(store.MaxFailures); n > 0 {
		e.Failures = make([]store.Failure, n)
	}
	for i := range e.Failures {
		e.Failures[i] = store.Failure{Attempt: r.count(maxCount), Time: r.time(), Text: r.string()}
	}
	if e.Record = nil; len(r.b) > 0 && !r.bad {
		e.Record = append([]byte(nil), r.b...)
	}
	r.b = nil
	return kind, r.end("task", key)
}

// appendRunning appends what the lease of a Running task changes of it.
func appendRunning(b []byte, t *task) []byte {
	w := writer{append(b, recordVersion)}
	w.flags(t.Stopping, t.Following, t.NextTask != nil)
	w.time(t.At)
	w.int(t.Token)
	w.uint(uint64(t.Attempts))
	w.int(int64(t.lease))
	w.string(t.sender)
	w.int(t.number)
	w.time(t.Next)
	if x := t.NextTask; x != nil {
		w.string(x.Handler)
		w.string(x.Schedule)
		w.string(string(x.Record))
	}
	return w.b
}

// readRunning reads what appendRunning has appended.
func readRunning(key, value []byte, t *task) error {
	r := read(value)
	beside := false
	r.flags(&t.Stopping, &t.Following, &beside)
	t.State, t.At, t.Token = store.Running, r.time(), r.int()
	t.Attempts = r.count(maxCount)
	t.lease = time.Duration(r.int())
	t.sender, t.number = r.string(), r.int()
	t.Next = r.time()
	t.NextTask = nil
	if beside {
		t.NextTask = &store.Task{ID: t.ID, Handler: r.string(), Schedule: r.string()}
		if s := r.string(); s != "" {
			t.NextTask.Record = []byte(s)
		}
	}
	return r.end("lease", key)
}

// numbers are what a shard keeps besides its tasks.
type numbers struct {
	seq           int64 // batches that were written
	fence         int64 // the latest token
	kinds         uint32
	pending, dead int64
	paused        bool
	store.Counters
}

func (n *numbers) counters() []*int64 {
	c := &n.Counters
	return []*int64{&c.Claimed, &c.Done, &c.Retried, &c.Died, &c.Crashed, &c.Released, &c.Refused, &c.Cancelled}
}

func appendNumbers(b []byte, n *numbers) []byte {
	w := writer{append(b, recordVersion)}
	w.flags(n.paused)
	w.int(n.seq)
	w.int(n.fence)
	w.uint(uint64(n.kinds))
	w.int(n.pending)
	w.int(n.dead)
	for _, c := range n.counters() {
		w.int(*c)
	}
	return w.b
}

func readNumbers(key, value []byte, n *numbers) error {
	r := read(value)
	r.flags(&n.paused)
	n.seq, n.fence = r.int(), r.int()
	n.kinds = uint32(r.count(maxCount))
	n.pending, n.dead = r.int(), r.int()
	for _, c := range n.counters() {
		*c = r.int()
	}
	return r.end("numbers", key)
}
