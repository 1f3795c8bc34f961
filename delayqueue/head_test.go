package delayqueue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/delayqueue"
)

func TestQueueHead_NamesTheFirstElement(t *testing.T) {
	q := delayqueue.New[string]()
	_, zero, ok := q.Head()
	require.False(t, ok)
	require.Equal(t, delayqueue.Ticket{}, zero)
	q.OfferAfter("second", 2*time.Hour)
	first, _ := q.OfferAfter("first", time.Hour)
	v, ticket, ok := q.Head()
	require.True(t, ok)
	require.Equal(t, "first", v)
	require.Equal(t, first, ticket)
	require.Equal(t, 2, q.Len(), "looking takes nothing")
	v, ok = q.Remove(ticket)
	require.True(t, ok)
	require.Equal(t, "first", v)
	v, _, _ = q.Head()
	require.Equal(t, "second", v)
}
