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
	_, next, ok := q.PollAt(math.MaxInt64)
	require.False(t, ok)
	require.EqualValues(t, int64(math.MaxInt64), next)
	q.Offer("second", epoch.Add(20))
	_, head := q.OfferAt("first", 10)
	require.True(t, head)
	_, next, ok = q.PollAt(9)
	require.False(t, ok)
	require.EqualValues(t, 10, next)
	v, next, ok := q.PollAt(10)
	require.True(t, ok)
	require.Equal(t, "first", v)
	require.EqualValues(t, 20, next)
	_, _, at, _ := q.Head()
	require.EqualValues(t, 20, at)
}
