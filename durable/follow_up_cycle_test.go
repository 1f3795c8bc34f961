package durable_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// A follow-up that follows itself is refused, in whatever order it does so.
func TestFollowUps_Cycle(t *testing.T) {
	c := durable.New(memstore.New())
	itself := &durable.Task{Handler: "again"}
	itself.OnSuccess, itself.OnFailure = itself, itself
	a, b := &durable.Task{Handler: "a"}, &durable.Task{Handler: "b"}
	a.OnFailure, b.OnSuccess = b, a
	for _, f := range []*durable.Task{itself, a} {
		task := durable.Task{Key: "k", Handler: "h", OnSuccess: f}
		_, err := c.Schedule(t.Context(), task, durable.After(0))
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = (&durable.Item{Task: task, When: durable.After(0)}).Stored()
		require.ErrorIs(t, err, durable.ErrInvalid)
	}
	chain := durable.Task{Handler: "last"}
	for range 40 { // each counts 512 bytes: about 20 kB
		next := chain
		chain = durable.Task{Handler: "next", OnSuccess: &next}
	}
	_, err := c.Schedule(t.Context(), chain, durable.After(0))
	require.NoError(t, err)
}
