package diskstore_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
	"github.com/tickless/tickless/timertest"
)

func subject(t *testing.T, dir string, opts ...diskstore.Option) storetest.Subject {
	clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	opts = append(opts, diskstore.WithClock(clk), diskstore.WithShards(1))
	var s *diskstore.Store
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
		s, err = diskstore.Open(dir, opts...)
		require.NoError(t, err)
		return s
	}
	first := reopen(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	steps := 0
	if testing.Short() {
		steps = 500
	}
	return storetest.Subject{Store: first, Advance: clk.Advance, Reopen: reopen, Steps: steps}
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		return subject(t, "store", diskstore.WithFS(vfs.NewMem()))
	})
}

// The same with a filter of keys that is made all the time.
func TestStore_FilterMadeAllTheTime(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		return subject(t, "store", diskstore.WithFS(vfs.NewMem()), diskstore.WithVain(1))
	})
}

// The same with a window of a few tasks, so that most of them are on the disk alone, and
// with heads that are raised whenever they can be.
func TestStore_SmallWindow(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		return subject(t, "store", diskstore.WithFS(vfs.NewMem()), diskstore.WithWindow(3, 2), diskstore.WithRaise(1))
	})
}
