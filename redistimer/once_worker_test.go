package redistimer

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer/internal/redistest"
)

// TestOnce_EveryReplyOfAWorkerLost has the commands of a worker, and those that
// consist of many, lose each reply that they get, one after the other and several in
// a row. They send again what was not answered, and what comes of it is the same.
func TestOnce_EveryReplyOfAWorkerLost(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	direct := s.Client()
	defer direct.Close()
	past := func(i int) When { return At(time.Unix(1_700_000_000+int64(i), 0)) }
	due := fmt.Sprint(time.Now().Add(24 * time.Hour).Truncate(time.Second).UnixMicro())
	put := func(t *testing.T, c *Client, opts ...ScheduleOption) {
		for i := range 3 {
			_, err := c.Schedule(ctx, Task{Key: fmt.Sprint("k", i), Handler: "h"}, past(i), opts...)
			require.NoError(t, err)
		}
	}
	bury := func(t *testing.T, c *Client) {
		put(t, c)
		(&crasher{t: t, c: c}).finish("x")
	}
	nothing := func(*testing.T, *Client) {}
	// report claims all, and reports on it.
	report := func(op, when string) func(t *testing.T, c *Client) int {
		return func(t *testing.T, c *Client) int {
			w := &crasher{t: t, c: c}
			tokens := w.claim()
			require.Len(t, tokens, 3)
			for id, token := range tokens {
				w.report(op, id, token, when)
			}
			return w.lost
		}
	}
	// until repeats what has an error.
	until := func(t *testing.T, do func() error) int {
		for n := 0; ; n++ {
			if do() == nil {
				return n
			}
			require.Less(t, n, 100)
		}
	}
	for _, x := range []struct {
		name    string
		prepare func(t *testing.T, c *Client)
		do      func(t *testing.T, c *Client) (again int)
	}{
		{"claim", put3(put), func(t *testing.T, c *Client) int {
			w := &crasher{t: t, c: c, n: 2}
			require.Len(t, w.claim(), 2)
			return w.lost
		}},
		{"claim after leases", func(t *testing.T, c *Client) {
			put(t, c)
			(&crasher{t: t, c: c, n: 2, lease: time.Millisecond}).claim()
			time.Sleep(2 * time.Millisecond)
		}, func(t *testing.T, c *Client) int {
			w := &crasher{t: t, c: c}
			require.Len(t, w.claim(), 3)
			return w.lost
		}},
		{"leave", put3(put), func(t *testing.T, c *Client) int {
			w := &crasher{t: t, c: c, n: 2}
			w.claim()
			w.send(claimScript, "s:crasher", -1, 1, 3, 0, 0)
			return w.lost
		}},
		{"extend", put3(put), func(t *testing.T, c *Client) int {
			w := &crasher{t: t, c: c}
			for id, token := range w.claim() {
				v, err := w.send(extendScript, "-", time.Hour.Microseconds(), id, token).Text()
				require.NoError(t, err)
				require.Equal(t, "1", v)
			}
			return w.lost
		}},
		{"done", put3(put), report("d", "")},
		{"done, repeats", put3(put), report("d", due)},
		{"retry", put3(put), report("r", due)},
		{"dead", put3(put), report("x", "")},
		{"dead, repeats", put3(put), report("x", due)},
		{"handed back", put3(put), report("b", "")},
		{"unknown", put3(put), report("u", due)},
		{"RequeueDead", bury, func(t *testing.T, c *Client) int {
			return until(t, func() error { _, err := c.RequeueDead(ctx, past(9), nil); return err })
		}},
		{"PurgeDead", bury, func(t *testing.T, c *Client) int {
			return until(t, func() error { _, err := c.PurgeDead(ctx, nil); return err })
		}},
		{"Repair", func(t *testing.T, c *Client) {
			bury(t, c)
			put(t, c, OnlyNew())
			_, err := c.Schedule(ctx, Task{Key: "p", Handler: "h"}, past(1))
			require.NoError(t, err)
			require.NoError(t, direct.ZRem(ctx, c.shards[0].keys[0], "p").Err())
			require.NoError(t, direct.ZRem(ctx, c.shards[0].keys[4], "k1").Err())
			require.NoError(t, direct.HDel(ctx, c.shards[0].keys[2], "k2").Err())
		}, func(t *testing.T, c *Client) int {
			return until(t, func() error { _, err := c.Repair(ctx); return err })
		}},
		{"looked over", nothing, func(t *testing.T, c *Client) int {
			return until(t, func() error {
				v, err := c.one(ctx, checkedScript, c.shards[0], "run", 1)
				if err == nil {
					require.EqualValues(t, 1, v)
				}
				return err
			})
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			again := 0
			for _, row := range []int{1, 2, 5} {
				for first := 0; ; first++ {
					name := WithName(fmt.Sprintf("w-%.4s-%d-%d-%d", x.name, len(x.name), row, first))
					plain := New(direct, name, WithShards(1), silent)
					x.prepare(t, plain)
					replies, cuts := 0, 0
					p := redistest.NewProxy(t, s.Addr, func() bool {
						replies++
						if replies <= first || cuts == row {
							return false
						}
						cuts++
						return true
					})
					r := redis.NewClient(&redis.Options{Addr: p.Addr, MinRetryBackoff: -1, MaxRetries: cmp.Or(row-2, -1)})
					again += x.do(t, New(r, name, WithShards(1), silent))
					r.Close()
					same := New(direct, WithName("same-"+plain.config.name), WithShards(1), silent)
					x.prepare(t, same)
					x.do(t, same)
					require.Equal(t, dump(t, same), dump(t, plain), "reply %d, %d lost", first, cuts)
					if cuts == 0 {
						break
					}
				}
			}
			require.NotZero(t, again)
		})
	}
}

func put3(put func(*testing.T, *Client, ...ScheduleOption)) func(*testing.T, *Client) {
	return func(t *testing.T, c *Client) { put(t, c) }
}

// The server's clock counts, as it is now: not as it was when the client began.
func TestRequeueDead_AfterTheClockWasSetForward(t *testing.T) {
	ctx := context.Background()
	s := miniredis.RunT(t)
	s.SetTime(time.Unix(1_800_000_000, 0))
	r := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer r.Close()
	c := New(r, WithShards(1), silent)
	_, err := c.Schedule(ctx, Task{Key: "k", Handler: "h"}, After(0))
	require.NoError(t, err)
	s.SetTime(time.Unix(1_800_003_600, 0))
	(&crasher{t: t, c: c}).finish("x")
	n, err := c.RequeueDead(ctx, After(0), nil)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
