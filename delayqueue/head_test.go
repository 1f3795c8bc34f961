package delayqueue_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/delayqueue"
)

func TestQueueHead_NamesTheFirstElement(t *testing.T) {
	q := delayqueue.New[string]()
	_, zero, _, ok := q.Head()
	require.False(t, ok)
	require.Equal(t, delayqueue.Ticket{}, zero)
	q.OfferAfter("second", 2*time.Hour)
	first, _ := q.OfferAfter("first", time.Hour)
	v, ticket, _, ok := q.Head()
	require.True(t, ok)
	require.Equal(t, "first", v)
	require.Equal(t, first, ticket)
	require.Equal(t, 2, q.Len(), "looking takes nothing")
	v, ok = q.Remove(ticket)
	require.True(t, ok)
	require.Equal(t, "first", v)
	v, _, _, _ = q.Head()
	require.Equal(t, "second", v)
}

// PollAt and OfferAt do not read the clock.
func TestQueuePollAt_InNanosecondsSinceTheEpoch(t *testing.T) {
	epoch := time.Now()
	q := delayqueue.New[string](delayqueue.WithEpoch(epoch))
	var dst [2]string
	n, next := q.PollAt(math.MaxInt64, dst[:])
	require.Zero(t, n)
	require.EqualValues(t, int64(math.MaxInt64), next)
	q.Offer("second", epoch.Add(20))
	_, head := q.OfferAt("first", 10)
	require.True(t, head)
	q.OfferAt("third", 30)
	n, next = q.PollAt(9, dst[:])
	require.Zero(t, n)
	require.EqualValues(t, 10, next)
	n, next = q.PollAt(10, dst[:])
	require.Equal(t, []string{"first"}, dst[:n])
	require.EqualValues(t, 20, next)
	_, _, at, _ := q.Head()
	require.EqualValues(t, 20, at)
	q.OfferAt("soon", 15)
	n, next = q.PollAt(30, dst[:])
	require.Equal(t, []string{"soon", "second"}, dst[:n], "no more than there is room for")
	require.EqualValues(t, 30, next)
	n, _ = q.PollAt(30, dst[:])
	require.Equal(t, []string{"third"}, dst[:n])
}
