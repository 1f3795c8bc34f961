package delayqueue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A model is the simplest correct queue: a slice sorted by deadline.
type model struct {
	now      time.Time
	elements []modelElement
}

type modelElement struct {
	deadline time.Time
	never    bool
	v        int
	ticket   Ticket
}

func (m *model) offer(e modelElement) (head bool) {
	// The queue treats all deadlines beyond its range as equal.
	if end := start.Add(math.MaxInt64); !e.deadline.Before(end) {
		e.deadline, e.never = end, true
	}
	if begin := start.Add(math.MinInt64); e.deadline.Before(begin) {
		e.deadline = begin
	}
	i := len(m.elements)
	for i > 0 && m.elements[i-1].deadline.After(e.deadline) {
		i--
	}
	m.elements = slices.Insert(m.elements, i, e)
	return i == 0
}

func (m *model) poll() (v int, ok bool) {
	if len(m.elements) == 0 || m.elements[0].never || m.elements[0].deadline.After(m.now) {
		return 0, false
	}
	v = m.elements[0].v
	m.elements = m.elements[1:]
	return v, true
}

// runModel applies random operations to a queue and to a model, and compares them. choose
// returns a number below n, or false to end the run.
func runModel(t *testing.T, choose func(n int) (int, bool)) {
	clk := newFakeClock(start)
	q := New[int](WithClock(clk))
	m := &model{now: start}
	var stale []Ticket
	next := 0
	far := []time.Time{{}, years(-3000), years(-292), years(291), years(293), years(1000)}
	pick := func(n int) int { i, _ := choose(n); return i }

	for step := 0; ; step++ {
		op, more := choose(16)
		if !more {
			break
		}
		did := ""
		switch op {
		case 0, 1, 2, 3, 4:
			deadline := m.now.Add(time.Duration(pick(20) - 3))
			if op == 0 {
				deadline = far[pick(len(far))]
			}
			did = fmt.Sprintf("Offer(%d, %v)", next, deadline)
			ticket, head := q.Offer(next, deadline)
			want := m.offer(modelElement{deadline: deadline, v: next, ticket: ticket})
			if head != want {
				t.Fatalf("step %d: %s: head %v, want %v", step, did, head, want)
			}
			next++
		case 5:
			d := []time.Duration{-1, 0, 1, 5, math.MinInt64, math.MaxInt64}[pick(6)]
			did = fmt.Sprintf("OfferAfter(%d, %d)", next, d)
			ticket, head := q.OfferAfter(next, d)
			want := m.offer(modelElement{deadline: m.now.Add(d), v: next, ticket: ticket})
			if head != want {
				t.Fatalf("step %d: %s: head %v, want %v", step, did, head, want)
			}
			next++
		case 6, 7, 8:
			did = "Poll"
			if len(m.elements) > 0 {
				stale = append(stale, m.elements[0].ticket)
			}
			v, ok := q.Poll()
			wantV, want := m.poll()
			if v != wantV || ok != want {
				t.Fatalf("step %d: Poll: %d %v, want %d %v", step, v, ok, wantV, want)
			}
			if !ok && len(m.elements) > 0 {
				stale = stale[:len(stale)-1]
			}
		case 9, 10, 11, 12:
			if len(m.elements) == 0 {
				continue
			}
			i := pick(len(m.elements))
			e := m.elements[i]
			did = fmt.Sprintf("Remove(%d)", e.v)
			v, ok := q.Remove(e.ticket)
			if v != e.v || !ok {
				t.Fatalf("step %d: %s: %d %v", step, did, v, ok)
			}
			m.elements = slices.Delete(m.elements, i, i+1)
			stale = append(stale, e.ticket)
		case 13:
			if len(stale) == 0 {
				continue
			}
			did = "Remove(stale)"
			if v, ok := q.Remove(stale[pick(len(stale))]); ok {
				t.Fatalf("step %d: a stale ticket removed %d", step, v)
			}
		case 14:
			d := time.Duration(pick(12))
			did = fmt.Sprintf("Advance(%d)", d)
			clk.Advance(d)
			m.now = m.now.Add(d)
		case 15:
			if pick(64) != 0 {
				continue
			}
			did = "Drain"
			all := q.Drain()
			if len(all) != len(m.elements) {
				t.Fatalf("step %d: Drain returned %d of %d", step, len(all), len(m.elements))
			}
			for i, e := range m.elements {
				if all[i] != e.v {
					t.Fatalf("step %d: Drain's element %d: %d, want %d", step, i, all[i], e.v)
				}
				stale = append(stale, e.ticket)
			}
			m.elements = nil
		}
		if q.Len() != len(m.elements) {
			t.Fatalf("step %d: %s: Len %d, want %d", step, did, q.Len(), len(m.elements))
		}
		v, deadline, ok := q.Peek()
		if ok != (len(m.elements) > 0) {
			t.Fatalf("step %d: %s: Peek: %v with %d elements", step, did, ok, len(m.elements))
		}
		if ok && (v != m.elements[0].v || !deadline.Equal(m.elements[0].deadline)) {
			t.Fatalf("step %d: %s: Peek: %d %v, want %v", step, did, v, deadline, m.elements[0])
		}
		if err := q.check(); err != nil {
			t.Fatalf("step %d: %s: %v", step, did, err)
		}
	}
}

// check returns an error if the queue's internal state is inconsistent.
func (q *Queue[T]) check() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := &q.elements
	live, dead, free := 0, 0, 0
	for _, s := range e.slots[1:] {
		switch {
		case s.seq == 0:
			free++
		case s.removed:
			dead++
		default:
			live++
		}
	}
	if live != e.live || dead != e.dead {
		return fmt.Errorf("%d live and %d dead elements counted, but %d and %d found", e.live, e.dead, live, dead)
	}
	if e.heap.Size() != 2+live+dead {
		return fmt.Errorf("%d keys for %d live and %d dead elements", e.heap.Size(), live, dead)
	}
	if dead > max(live, rebuildThreshold) {
		return fmt.Errorf("%d dead and %d live elements: the heap must be rebuilt", dead, live)
	}
	// Offers may need slots beside the dead ones, which are at most rebuildThreshold then.
	if n := len(e.slots); n > 2*rebuildThreshold && live < n/4 {
		return fmt.Errorf("%d slots for %d elements: they must shrink", n, live)
	}
	if k, ok := e.first(); ok != (live > 0) {
		return fmt.Errorf("the heap has a first key: %v, with %d elements", ok, live)
	} else if ok && e.slots[k.slot].removed {
		return fmt.Errorf("the first element is dead")
	}
	for number := e.firstFree; number != 0; number = e.slots[number].ticketSlot {
		free--
	}
	if free != 0 {
		return fmt.Errorf("the list of free slots misses %d", free)
	}
	return nil
}

// The test applies random operations to a queue and to a slice, and compares them.
// TICKLESS_MODEL is the number of operations, TICKLESS_SEED the seed.
func TestQueue_Model(t *testing.T) {
	total, seed := 50_000, rand.Uint64()
	for name, set := range map[string]func(string) error{
		"TICKLESS_MODEL": func(v string) (err error) { total, err = strconv.Atoi(v); return err },
		"TICKLESS_SEED":  func(v string) (err error) { seed, err = strconv.ParseUint(v, 10, 64); return err },
	} {
		if v := os.Getenv(name); v != "" {
			if err := set(v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	t.Logf("TICKLESS_SEED=%d", seed)
	const stepsPerRun = 2500
	for run := range max(total/stepsPerRun, 1) {
		r := rand.New(rand.NewPCG(seed, uint64(run)))
		steps := stepsPerRun
		grow := r.IntN(3) == 0 // some runs hold many elements
		runModel(t, func(n int) (int, bool) {
			if n == 16 {
				steps--
				if grow && r.IntN(2) == 0 {
					return 1, steps > 0
				}
			}
			return r.IntN(n), steps > 0
		})
		if t.Failed() {
			t.Fatalf("run %d", run)
		}
	}
}

func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 0, 1, 4, 1, 4, 6, 14, 5, 6})
	f.Add([]byte{1, 1, 1, 2, 1, 3, 9, 0, 9, 0, 13, 0, 15, 0})
	r := rand.New(rand.NewPCG(1, 2))
	long := make([]byte, 3000)
	for i := range long {
		long[i] = byte(r.Uint32())
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, data []byte) {
		runModel(t, func(n int) (int, bool) {
			if len(data) == 0 {
				return 0, false
			}
			i := int(data[0]) % n
			data = data[1:]
			return i, true
		})
	})
}
