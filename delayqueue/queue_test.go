package delayqueue

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

// years returns the time n years after start. A Duration cannot hold that many.
func years(n int) time.Time { return start.AddDate(n, 0, 0) }

func TestQueueOffer_DeadlineDecidesWhenDue(t *testing.T) {
	const maxD = time.Duration(math.MaxInt64)
	tests := []struct {
		name     string
		deadline time.Time
		due      time.Duration // when it must come out, since start
		never    bool
	}{
		{name: "now", deadline: start},
		{name: "a nanosecond ago", deadline: start.Add(-1)},
		{name: "a nanosecond ahead", deadline: start.Add(1), due: 1},
		{name: "an hour ahead", deadline: start.Add(time.Hour), due: time.Hour},
		{name: "elsewhere", deadline: start.Add(time.Hour).In(time.FixedZone("", 3600)), due: time.Hour},
		{name: "zero time", deadline: time.Time{}},
		{name: "before the range", deadline: years(-5000)},
		{name: "earliest", deadline: time.Unix(math.MinInt64/2, 0)},
		{name: "last of the range", deadline: start.Add(maxD - 1), due: maxD - 1},
		{name: "first beyond", deadline: start.Add(maxD), never: true},
		{name: "beyond the range", deadline: years(400), never: true},
		{name: "latest", deadline: time.Unix(1<<55, 0), never: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clk := newFakeClock(start)
			q := New[string](WithClock(clk))
			_, head := q.Offer(tt.name, tt.deadline)
			assert.True(t, head)
			if tt.due > 0 || tt.never {
				_, ok := q.Poll()
				require.False(t, ok, "early")
			}
			if tt.never {
				for range 3 { // 876 years: the clock leaves the range
					clk.Advance(maxD)
					_, ok := q.Poll()
					require.False(t, ok, "early")
				}
				assert.Equal(t, []string{tt.name}, q.Drain())
				return
			}
			if tt.due > 0 {
				clk.Advance(tt.due - 1)
				_, ok := q.Poll()
				require.False(t, ok, "early by a nanosecond")
				_, deadline, ok := q.Peek()
				assert.True(t, ok)
				assert.True(t, deadline.Equal(tt.deadline), "Peek: %v", deadline)
				clk.Advance(1)
			}
			v, ok := q.Poll()
			assert.True(t, ok)
			assert.Equal(t, tt.name, v)
		})
	}
}

func TestQueueOfferAfter_DelayCountsFromTheOffer(t *testing.T) {
	clk := newFakeClock(start)
	q := New[int](WithClock(clk))
	clk.Advance(time.Hour)
	q.OfferAfter(5, math.MaxInt64)
	q.OfferAfter(4, math.MaxInt64-1)
	q.OfferAfter(3, time.Second)
	q.OfferAfter(2, 0)
	q.OfferAfter(1, -time.Second)
	q.OfferAfter(0, math.MinInt64)
	for want := range 3 {
		v, ok := q.Poll()
		require.True(t, ok)
		assert.Equal(t, want, v)
	}
	clk.Advance(time.Second - 1)
	_, ok := q.Poll()
	assert.False(t, ok, "early")
	clk.Advance(1)
	v, ok := q.Poll()
	assert.True(t, ok)
	assert.Equal(t, 3, v)
	for range 3 {
		clk.Advance(math.MaxInt64)
		_, ok = q.Poll()
		assert.False(t, ok, "an element beyond the range came out")
	}
	assert.Equal(t, []int{5, 4}, q.Drain(), "elements that never fall due: first in, first out")
}

func TestQueueOffer_TellsOfANewHead(t *testing.T) {
	q := New[int](WithClock(newFakeClock(start)))
	var tickets []Ticket
	for i, tt := range []struct {
		at   time.Duration
		head bool
	}{{50, true}, {50, false}, {60, false}, {40, true}, {40, false}, {39, true}} {
		ticket, head := q.Offer(i, start.Add(tt.at))
		assert.Equal(t, tt.head, head, "offer %d", i)
		tickets = append(tickets, ticket)
	}
	q.Remove(tickets[5])
	_, head := q.Offer(6, start.Add(39))
	assert.True(t, head, "a head that was removed still counts")
}

func TestQueueOffer_EqualDeadlinesComeFirstInFirstOut(t *testing.T) {
	// The heap has several levels, and is also rebuilt.
	q := New[int](WithClock(newFakeClock(start)))
	var tickets []Ticket
	for i := range 1000 {
		ticket, _ := q.Offer(i, start)
		tickets = append(tickets, ticket)
	}
	for i := range 1000 {
		if i%5 != 0 {
			q.Remove(tickets[i])
		}
	}
	for i := 1000; i < 1100; i += 5 { // into used slots
		q.Offer(i, start)
	}
	for i := 0; i < 1100; i += 5 {
		v, ok := q.Poll()
		require.True(t, ok)
		require.Equal(t, i, v)
	}
	assert.Zero(t, q.Len())
}

// A board boots in 1970 and gets the time from the network after the queue was made.
func TestQueueOffer_WallClockSetSinceTheQueueWasMade(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour, 50 * 365 * 24 * time.Hour} {
		q := New[int]()
		// Simulate that the wall clock was set by step after the queue was made: move the
		// epoch's wall reading back.
		q.epoch = setWall(q.epoch, -step)
		now := time.Now()
		q.Offer(2, now.Add(time.Minute).Round(0))
		q.Offer(1, now.Add(time.Minute-time.Second))
		q.Offer(3, now.Add(time.Minute+time.Second))
		k, _ := q.elements.first()
		assert.Less(t, time.Duration(k.dueAt), time.Hour/2, "step %v", step)
		assert.Equal(t, []int{1, 2, 3}, q.Drain(), "step %v", step)
	}
}

func TestQueueRemove_StaleTicketsAreRefused(t *testing.T) {
	clk := newFakeClock(start)
	q := New[string](WithClock(clk))
	refused := func(ticket Ticket, why string) {
		t.Helper()
		n := q.Len()
		_, ok := q.Remove(ticket)
		assert.False(t, ok, why)
		assert.Equal(t, n, q.Len(), why)
	}
	refused(Ticket{}, "zero, empty queue")
	removed, _ := q.Offer("removed", start)
	v, ok := q.Remove(removed)
	assert.True(t, ok)
	assert.Equal(t, "removed", v)
	refused(removed, "removed")
	polled, _ := q.Offer("polled", start)
	refused(removed, "slot used again")
	refused(Ticket{}, "zero")
	v, _ = q.Poll()
	assert.Equal(t, "polled", v)
	refused(polled, "polled")
	drained, _ := q.Offer("drained", start.Add(1))
	q.Drain()
	refused(drained, "drained")
	first, _ := q.Offer("first", start)
	kept, _ := q.Offer("kept", start)
	refused(drained, "drained, and the queue is in use again")
	q.Remove(first)
	refused(Ticket{}, "zero")

	// Slots get new elements after their old elements were removed.
	var tickets []Ticket
	for range 4 * 256 {
		ticket, _ := q.Offer("old", start)
		tickets = append(tickets, ticket)
	}
	for _, ticket := range tickets {
		_, ok = q.Remove(ticket)
		assert.True(t, ok)
	}
	for range 4 * 256 {
		q.Offer("new", start)
	}
	for _, ticket := range tickets {
		refused(ticket, "slots filled again")
	}
	v, ok = q.Remove(kept)
	assert.True(t, ok)
	assert.Equal(t, "kept", v)
	assert.Equal(t, kept, kept, "tickets compare")
	assert.NotEqual(t, kept, drained)
}

// Elements move when the queue shrinks after a peak.
func TestQueueRemove_TicketsHoldAfterShrinking(t *testing.T) {
	q := New[int](WithClock(newFakeClock(start)))
	r := rand.New(rand.NewPCG(1, 2))
	tickets := map[int]Ticket{}
	left := map[int]Ticket{}
	next := 0
	for range 5 { // peaks
		for range 3000 {
			tickets[next], _ = q.Offer(next, start.Add(time.Duration(r.IntN(100))))
			next++
		}
		for _, i := range slices.Sorted(maps.Keys(tickets)) {
			if r.IntN(50) == 0 {
				continue
			}
			v, ok := q.Remove(tickets[i])
			require.True(t, ok)
			require.Equal(t, i, v)
			left[i] = tickets[i]
			delete(tickets, i)
		}
		require.NoError(t, q.check())
		require.Less(t, len(q.elements.slots), 4*len(tickets)+rebuildThreshold)
		for i, ticket := range left {
			_, ok := q.Remove(ticket)
			require.False(t, ok, "%d has left", i)
		}
		for range 10 {
			v, ticket, _, ok := q.Head()
			require.True(t, ok)
			require.Equal(t, tickets[v], ticket, "the head has the ticket of its Offer")
			_, ok = q.Remove(ticket)
			require.True(t, ok)
			left[v] = ticket
			delete(tickets, v)
		}
	}
	for i, ticket := range tickets {
		v, ok := q.Remove(ticket)
		require.True(t, ok)
		require.Equal(t, i, v)
	}
	require.Zero(t, q.Len())
}

func TestQueueRemove_LatestFirstLeavesAtMostHalfDead(t *testing.T) {
	q := New[int](WithClock(newFakeClock(start)))
	var tickets []Ticket
	for i := range 2000 {
		ticket, _ := q.Offer(i, start.Add(time.Duration(i)))
		tickets = append(tickets, ticket)
	}
	rebuilt := 0
	for i := len(tickets) - 1; i > 0; i-- {
		before := q.elements.heap
		q.Remove(tickets[i])
		if q.elements.heap != before {
			rebuilt++
		}
		require.NoError(t, q.check(), "%d left", i)
	}
	assert.Equal(t, []int{0}, q.Drain())
	// The heap is rebuilt when about half of its elements have been removed: at 1000,
	// 500, 250, 125 and 62 elements.
	assert.LessOrEqual(t, rebuilt, 7)
}

func TestQueueDrain(t *testing.T) {
	clk := newFakeClock(start)
	q := New[int](WithClock(clk))
	assert.Nil(t, q.Drain())
	q.OfferAfter(3, time.Hour)
	q.OfferAfter(1, -1)
	ticket, _ := q.OfferAfter(9, time.Second)
	q.OfferAfter(2, time.Second)
	q.Offer(4, years(500))
	q.Remove(ticket)
	assert.Equal(t, []int{1, 2, 3, 4}, q.Drain())
	assert.Zero(t, q.Len())
	_, _, ok := q.Peek()
	assert.False(t, ok)
	q.OfferAfter(5, 0)
	v, ok := q.Poll()
	assert.True(t, ok, "usable after Drain")
	assert.Equal(t, 5, v)
}

func TestNew_NilClockIsTheSystems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[int](WithClock(nil))
		q.OfferAfter(1, time.Second)
		begin := time.Now()
		v, err := q.Take(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, 1, v)
		assert.Equal(t, time.Second, time.Since(begin))
	})
}
