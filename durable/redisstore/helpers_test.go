package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

var (
	quiet  = slog.New(slog.NewTextHandler(io.Discard, nil))
	silent = WithLogger(quiet)
)

// A client is a durable.Client with its Store.
type client struct {
	*durable.Client
	s *Store
}

func newClient(r redis.UniversalClient, opts ...Option) *client {
	s := New(r, append(opts, silent)...)
	return &client{durable.New(s, durable.WithLogger(quiet)), s}
}

// key returns the name of a Redis key in the task's shard.
func (c *client) key(id, name string) string {
	return keyOf(c.s.shards[store.ShardOf(id, len(c.s.shards))], name)
}

// dueOf returns the name of the Redis key with a handler's pending tasks.
func dueOf(handler string) string { return "due:" + strconv.Itoa(len(handler)) + ":" + handler }

func keyOf(sh *shard, name string) string {
	if strings.HasPrefix(name, "due:") {
		return sh.keys[0] + name[len("due:"):]
	}
	for i, n := range keyNames {
		if n == name {
			return sh.keys[i]
		}
	}
	panic(name)
}

// dump returns the data of a store with one shard, for comparisons. It omits what differs
// in each run of the test, such as tokens and the times of claims.
func dump(t *testing.T, c *client) map[string]string {
	t.Helper()
	ctx := context.Background()
	out := make(map[string]string)
	for _, name := range []string{dueOf("h"), dueOf("h2"), "lease", "dead"} {
		for _, z := range c.s.client.ZRangeWithScores(ctx, keyOf(c.s.shards[0], name), 0, -1).Val() {
			score := strconv.FormatFloat(z.Score, 'f', 0, 64)
			if name == "lease" || name == "dead" {
				score = ""
			}
			out[name+" "+z.Member.(string)] = score
		}
	}
	for id, s := range c.s.client.HGetAll(ctx, keyOf(c.s.shards[0], "run")).Val() {
		token, rest, _ := strings.Cut(s, " ")
		out["run "+id] = fmt.Sprint(token != "0", " ", rest)
	}
	for id, s := range c.s.client.HGetAll(ctx, keyOf(c.s.shards[0], "task")).Val() {
		x := parseRecord(id, s)
		require.GreaterOrEqual(t, len(x.Record), 8)
		copy(x.Record[1:7], "random") // the generation is random
		out["task "+id] = fmt.Sprintf("%s %+v", s[:dueSize], x)
	}
	for id, s := range c.s.client.HGetAll(ctx, keyOf(c.s.shards[0], "err")).Val() {
		out["err "+id] = fmt.Sprint(len(parseFailures(s)))
	}
	return out
}

var crashers atomic.Int64

// A crasher claims tasks and reports on them, as a worker does.
type crasher struct {
	t        *testing.T
	c        *client
	n        int           // maximum tasks in a claim; zero is 100
	lease    time.Duration // zero is an hour
	handlers []string      // nil means h and h2
	rooms    []store.Room  // for the handlers
	spare    int
	shard    int
	sender   string
	number   int64
	lost     int // rounds that were repeated because they had no answer
}

func (w *crasher) do(r store.Round) store.Answer {
	w.t.Helper()
	r.Lease, r.MaxCrashes = cmp.Or(w.lease, time.Hour), 3
	if w.sender == "" { // a counter, because addresses are reused
		w.sender = fmt.Sprint("crasher", crashers.Add(1))
	}
	w.number++
	for {
		a, err := w.c.s.Do(context.Background(), w.shard, store.Stamp{Sender: w.sender, Number: w.number}, r)
		if err == nil {
			return a
		}
		require.ErrorContains(w.t, err, "EOF")
		w.lost++
		require.Less(w.t, w.lost, 1000)
	}
}

// claims returns a round that claims due tasks.
func (w *crasher) claims() store.Round {
	handlers := w.handlers
	if handlers == nil {
		handlers = []string{"h", "h2"}
	}
	return store.Round{Claim: store.Claim{Asked: true, Max: cmp.Or(w.n, 100), Handlers: handlers, Rooms: w.rooms, Spare: w.spare}}
}

// claim claims due tasks, and returns their ids and tokens.
func (w *crasher) claim() map[string]int64 {
	out := make(map[string]int64)
	for _, x := range w.do(w.claims()).Tasks {
		out[x.ID] = x.Token
	}
	return out
}

func (w *crasher) report(end store.End, id string, token int64, next store.When) {
	w.do(store.Round{Reports: []store.Report{{Lease: store.Lease{ID: id, Token: token}, End: end, Next: next, Due: 1, Text: "text"}}})
}

// finish claims due tasks and reports on all of them.
func (w *crasher) finish(end store.End) {
	for id, token := range w.claim() {
		w.report(end, id, token, store.When{})
	}
}
