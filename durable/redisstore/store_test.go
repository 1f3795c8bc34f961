package redisstore

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A clock makes the scripts of a Store read the time from a Redis key. advance changes
// the time.
type clock struct {
	s   *Store
	now time.Time
}

var clockedScripts = loadScripts(`(function()
  local clock = call('HGET', meta, 'test clock')
  return clock and {sub(clock, 2, 11), sub(clock, 12)} or call('TIME')
end)()`)

func (c *clock) advance(d time.Duration) {
	c.now = c.now.Add(d)
	for _, sh := range c.s.shards {
		if err := c.s.client.HSet(context.Background(), sh.keys[keyMeta], "test clock", fmt.Sprint("t", c.now.UnixMicro())).Err(); err != nil {
			panic(err)
		}
	}
}

// open returns a function that opens a Store for a test. All Stores of a test share the
// name, the server and the clock.
func open(connect func() redis.UniversalClient, scripts *scripts, steps int) func(t *testing.T) storetest.Subject {
	return func(t *testing.T) storetest.Subject {
		rdb := connect()
		t.Cleanup(func() { rdb.Close() })
		c := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		again := func(*testing.T) store.Store {
			if c.s != nil {
				c.s.Close()
			}
			c.s = New(rdb, WithName(t.Name()), WithShards(1))
			c.s.scripts, c.s.config.nowAsksServer = scripts, true
			return c.s
		}
		s := again(t)
		c.advance(0)
		t.Cleanup(func() { c.s.Close() })
		return storetest.Subject{Store: s, Advance: c.advance, Reopen: again, Steps: steps}
	}
}

// TestStore_OnMiniredis runs storetest on miniredis, because programs may use it in their
// tests.
func TestStore_OnMiniredis(t *testing.T) {
	if testing.Short() {
		t.Skip("miniredis interprets Lua slowly")
	}
	steps := 100
	if os.Getenv("TICKLESS_STRESS") != "" {
		steps = 0
	}
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		m := miniredis.RunT(t)
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		m.SetTime(now)
		x := open(func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: m.Addr()}) }, allScripts, steps)(t)
		x.Advance = func(d time.Duration) {
			now = now.Add(d)
			m.SetTime(now)
		}
		return x
	})
}

func TestStore_OnAServer(t *testing.T) {
	server := redistest.Start(t)
	storetest.Run(t, open(func() redis.UniversalClient { return server.Client() }, clockedScripts, 1000))
}

// TestStore_RealTime runs storetest with the server's clock. It runs only with
// TICKLESS_STRESS: on a busy machine a step may take longer than a lease.
func TestStore_RealTime(t *testing.T) {
	if os.Getenv("TICKLESS_STRESS") == "" {
		t.Skip("set TICKLESS_STRESS to run it")
	}
	server := redistest.Start(t)
	cluster := redistest.StartCluster(t, 3, 0)
	for _, x := range []struct {
		name    string
		connect func() redis.UniversalClient
		shards  int
	}{
		{"server", func() redis.UniversalClient { return server.Client() }, 2},
		{"cluster", func() redis.UniversalClient { return cluster.Client() }, 4},
	} {
		t.Run(x.name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Subject {
				rdb := x.connect()
				t.Cleanup(func() { rdb.Close() })
				return storetest.Subject{Store: New(rdb, WithName(t.Name()), WithShards(x.shards))}
			})
		})
	}
}
