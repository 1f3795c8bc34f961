package delayqueue

import (
	"context"
	"runtime"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type payload struct{ _ [64]byte }

// gone collects garbage and returns how many of ps are no longer reachable.
func gone(ps []weak.Pointer[payload]) (n int) {
	runtime.GC()
	for _, p := range ps {
		if p.Value() == nil {
			n++
		}
	}
	return n
}

func TestQueue_RetainsNothingThatHasLeft(t *testing.T) {
	const n = 3 * 256 / 2
	leave := map[string]func(q *Queue[*payload], tickets []Ticket){
		"Poll": func(q *Queue[*payload], _ []Ticket) {
			for range n {
				_, ok := q.Poll()
				require.True(t, ok)
			}
		},
		"Take": func(q *Queue[*payload], _ []Ticket) {
			for range n {
				_, err := q.Take(context.Background())
				require.NoError(t, err)
			}
		},
		"Drain": func(q *Queue[*payload], _ []Ticket) { require.Len(t, q.Drain(), n+1) },
		"Remove": func(q *Queue[*payload], tickets []Ticket) {
			// Too few keys become dead for a rebuild, so the heap keeps some of them.
			for _, ticket := range tickets {
				_, ok := q.Remove(ticket)
				require.True(t, ok)
			}
		},
	}
	for name, f := range leave {
		t.Run(name, func(t *testing.T) {
			q := New[*payload]()
			var ps []weak.Pointer[payload]
			var tickets []Ticket
			for i := range n {
				p := new(payload)
				ps = append(ps, weak.Make(p))
				ticket, _ := q.Offer(p, time.Time{}.Add(time.Duration(i)))
				tickets = append(tickets, ticket)
			}
			stays := new(payload)
			staysWeak := weak.Make(stays)
			q.OfferAfter(stays, time.Hour)
			stays = nil
			require.Zero(t, gone(ps), "pending elements")

			f(q, tickets)
			assert.Equal(t, n, gone(ps))
			assert.Equal(t, name == "Drain", staysWeak.Value() == nil)
			runtime.KeepAlive(q)
			runtime.KeepAlive(tickets)
		})
	}
}

func TestQueueRemove_TombstonesRetainNothing(t *testing.T) {
	// The removed elements are in the middle, so that their keys stay in the heap.
	q := New[*payload]()
	var ps []weak.Pointer[payload]
	for i := range 300 {
		p := new(payload)
		ticket, _ := q.OfferAfter(p, time.Hour+time.Duration(i))
		if i%3 == 1 {
			ps = append(ps, weak.Make(p))
			q.Remove(ticket)
		}
	}
	require.Greater(t, q.elements.dead, 0, "no dead key")
	assert.Equal(t, len(ps), gone(ps))
	runtime.KeepAlive(q)
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestQueue_MemoryFallsAfterAPeak(t *testing.T) {
	const n = 50_000
	fall := map[string]func(q *Queue[[32]byte], tickets []Ticket){
		"Poll": func(q *Queue[[32]byte], _ []Ticket) {
			for range n - 10 {
				_, ok := q.Poll()
				require.True(t, ok)
			}
		},
		"Remove": func(q *Queue[[32]byte], tickets []Ticket) {
			for _, ticket := range tickets[10:] {
				_, ok := q.Remove(ticket)
				require.True(t, ok)
			}
		},
		"Poll after Remove": func(q *Queue[[32]byte], tickets []Ticket) {
			for _, ticket := range tickets[n/2 : n-10] {
				_, ok := q.Remove(ticket)
				require.True(t, ok)
			}
			for range n / 2 {
				_, ok := q.Poll()
				require.True(t, ok)
			}
		},
		"Drain": func(q *Queue[[32]byte], _ []Ticket) { q.Drain() },
	}
	for name, f := range fall {
		t.Run(name, func(t *testing.T) {
			tickets := make([]Ticket, 0, n)
			before := heapBytes()
			q := New[[32]byte]()
			for i := range n {
				ticket, _ := q.Offer([32]byte{}, time.Time{}.Add(time.Duration(i)))
				tickets = append(tickets, ticket)
			}
			peak := heapBytes() - before
			require.Greater(t, peak, int64(n*(32+16+24)), "the peak did not use more memory")
			f(q, tickets)
			after := heapBytes() - before
			assert.Less(t, after, peak/20, "peak %d bytes", peak)
			runtime.KeepAlive(q)
			runtime.KeepAlive(tickets)
		})
	}
}

func TestQueue_AllocatesNothingInSteadyState(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 63, 255, 256, 513, 5000} {
		q := New[int](WithClock(newFakeClock(start)))
		for i := range n {
			q.Offer(i, start)
		}
		cycle := func() {
			for i := range 3 {
				q.Offer(i, start)
			}
			for range 3 {
				q.Poll()
			}
		}
		cycle() // reaches the size that is then kept
		assert.Zero(t, testing.AllocsPerRun(1000, cycle), "n=%d", n)
	}
}

func TestQueue_IsCollectedWhenItsTakersHaveLeft(t *testing.T) {
	// An alarm that is still set would keep the queue alive for an hour.
	q := New[int]()
	q.OfferAfter(1, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := q.Take(ctx)
		left <- err
	}()
	for q.sleeping() == 0 {
		runtime.Gosched()
	}
	cancel()
	assert.ErrorIs(t, <-left, context.Canceled)
	w := weak.Make(q)
	q = nil
	// The runtime may keep a stopped timer for a moment after Stop.
	for range 100 {
		runtime.GC()
		if w.Value() == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the queue is still reachable")
}

// sleeping returns how many takers sleep in the line.
func (q *Queue[T]) sleeping() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sleepingTakers.Len()
}

func TestQueue_BytesOfAnElement(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the limit is for 64-bit systems")
	}
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		each := 0.0
		for range 10 { // garbage of other tests may be collected in between
			before := heapBytes()
			q := New[int64](WithClock(newFakeClock(start)))
			for i := range n {
				q.Offer(int64(i), start.Add(time.Duration(i)))
			}
			each = float64(heapBytes()-before)/float64(n) - 8
			runtime.KeepAlive(q)
			if 38 < each && each < 72 {
				break
			}
		}
		t.Logf("%d elements: %.1f bytes for each besides its own 8", n, each)
		assert.Greater(t, each, 38.0)
		assert.Less(t, each, 72.0)
	}
}
