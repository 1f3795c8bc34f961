package sqlitestore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
	"github.com/tickless/tickless/timertest"
)

// subject returns a Store with a virtual clock in a new file. Verify checks the whole
// file each time the Store closes.
func subject(t *testing.T) storetest.Subject {
	clk := &storetest.FaultyClock{Clock: timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	path := filepath.Join(t.TempDir(), "tasks.db")
	var s *sqlitestore.Store
	closeIt := func() {
		if s != nil {
			_, err := s.Verify(t.Context())
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
	}
	reopen := func(t *testing.T) store.Store {
		closeIt()
		var err error
		s, err = sqlitestore.Open(path, sqlitestore.WithClock(clk), sqlitestore.WithSyncInterval(time.Minute))
		require.NoError(t, err)
		return s
	}
	first := reopen(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return storetest.Subject{
		Store: first, Advance: clk.Advance, Reopen: reopen, Steps: steps(3000), Clock: clk,
		SetWall: func(d time.Duration) { clk.SetWall(clk.Wall().Add(d)) },
	}
}

func steps(n int) int {
	if testing.Short() {
		return 500
	}
	return n
}

func TestStore(t *testing.T) {
	storetest.Run(t, subject)
}
