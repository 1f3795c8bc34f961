package memstore_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
	"github.com/tickless/tickless/timertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		clk := &storetest.FaultyClock{Clock: timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
		return storetest.Subject{Store: memstore.New(memstore.WithClock(clk), memstore.WithShards(1)), Advance: clk.Advance, SetWall: setter(clk.Clock), Clock: clk}
	})
}

// TestStore_RealTime uses the system's clock. It needs TICKLESS_STRESS, because on a busy
// machine leases may expire too early.
func TestStore_RealTime(t *testing.T) {
	if os.Getenv("TICKLESS_STRESS") == "" {
		t.Skip("set TICKLESS_STRESS to run it")
	}
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		return storetest.Subject{Store: memstore.New(memstore.WithShards(4))}
	})
}

// TestStore_Reopened runs storetest with a store that can be reopened: see Reopened.
func TestStore_Reopened(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		opts := []memstore.Option{memstore.WithClock(clk), memstore.WithShards(1)}
		s := memstore.New(opts...)
		return storetest.Subject{Store: s, Advance: clk.Advance, SetWall: setter(clk), Reopen: func(*testing.T) store.Store {
			s = memstore.Reopened(s, opts...)
			return s
		}}
	})
}

// setter returns a function that moves the wall clock, for Subject.SetWall.
func setter(clk *timertest.Clock) func(time.Duration) {
	return func(d time.Duration) { clk.SetWall(clk.Wall().Add(d)) }
}
