package durable_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// Paused tasks, which keep their times, do not hide the runs behind them.
func TestUpcoming_BehindPausedTasks(t *testing.T) {
	c := durable.New(memstore.New())
	for i := range 25 {
		_, err := c.Schedule(t.Context(), durable.Task{Key: fmt.Sprint("paused", i), Handler: "h", Every: time.Hour}, durable.After(0), durable.Paused())
		require.NoError(t, err)
	}
	for i := range 12 {
		_, err := c.Schedule(t.Context(), durable.Task{Key: fmt.Sprintf("k%02d", i), Handler: "h"}, durable.After(time.Minute+time.Duration(i)*time.Second))
		require.NoError(t, err)
	}
	runs, err := c.Upcoming(t.Context(), time.Now().Add(time.Hour), 10)
	require.NoError(t, err)
	require.Len(t, runs, 10)
	require.Equal(t, "k00", runs[0].Key)
	require.Equal(t, "k09", runs[9].Key)
}
