package redisstore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

// loadOldShard writes the keys of a shard with schema 5 to a server.
func loadOldShard(t *testing.T, rdb *redis.Client) { loadShard(t, rdb, "testdata/schema5.txt") }

// loadShard writes the keys of a file to a server. The program
// sqlitestore/testdata/generate.go made them.
func loadShard(t *testing.T, rdb *redis.Client, name string) {
	require.NoError(t, rdb.FlushAll(t.Context()).Err())
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var words []any
		for rest := lines.Text(); rest != ""; rest = strings.TrimPrefix(rest, " ") {
			quoted, err := strconv.QuotedPrefix(rest)
			require.NoError(t, err)
			word, err := strconv.Unquote(quoted)
			require.NoError(t, err)
			words, rest = append(words, word), rest[len(quoted):]
		}
		if words[0] == "ZADD" && strings.HasSuffix(words[1].(string), ":lease") {
			words[2] = time.Now().Add(1000 * time.Hour).UnixMicro() // the leases of schema5.txt end in January 2027
		}
		require.NoError(t, rdb.Do(t.Context(), words...).Err())
	}
	require.NoError(t, lines.Err())
}

// dumpAll returns all keys of a server with their values.
func dumpAll(t *testing.T, rdb *redis.Client) map[string]string {
	out := make(map[string]string)
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		text, err := rdb.Dump(t.Context(), key).Result()
		require.NoError(t, err)
		out[key] = text
	}
	return out
}

// open returns a Store of the older version 5.
func openOld(rdb redis.UniversalClient) *Store {
	s := New(rdb)
	s.schema = "5/1"
	s.shards = newShards(s.config.name, s.schema, 1)
	s.shards[0].combiner.store = s
	return s
}

func TestUpgrade(t *testing.T) {
	rdb := redistest.Start(t).Client()
	defer rdb.Close()
	loadOldShard(t, rdb)
	old := openOld(rdb)
	defer old.Close()
	_, err := old.Now(t.Context(), 0)
	require.NoError(t, err)

	s := New(rdb)
	defer s.Close()
	_, err = s.Get(t.Context(), 0, "plain")
	require.NoError(t, err)
	schema := rdb.HGet(t.Context(), s.shards[0].keys[keyMeta], "schema").Val()
	require.True(t, strings.HasPrefix(schema, "6/1@1795"), schema)
	n, damaged, err := s.countUnindexed(t.Context(), s.shards[0])
	require.NoError(t, err)
	require.Zero(t, n)
	require.Empty(t, damaged)
	require.EqualValues(t, 6, rdb.ZCard(t.Context(), keyOf(s.shards[0], "ended")).Val())

	before := dumpAll(t, rdb)
	requireRefused(t, old)
	require.Equal(t, before, dumpAll(t, rdb), "the older version has changed something")
	storetest.RunUpgraded(t, s, "testdata/schema5.gob")
}

// Keys that the first program with this schema wrote work with this one.
func TestUpgrade_KeysOfFirstRelease(t *testing.T) {
	rdb := redistest.Start(t).Client()
	defer rdb.Close()
	loadShard(t, rdb, "testdata/schema6.txt")
	s := New(rdb)
	defer s.Close()
	storetest.RunUpgraded(t, s, "testdata/schema6.gob")
}

// requireRefused checks that each call of a Store says that the data has another version.
func requireRefused(t *testing.T, s *Store) {
	ctx := t.Context()
	s.shards[0].lastReading.Store(nil)
	stamp := store.Stamp{Sender: "old", Number: 1}
	task := store.Task{ID: "new", Handler: "h"}
	for what, call := range map[string]func() error{
		"Change": func() error {
			_, err := s.Change(ctx, 0, stamp, store.Command{Op: store.Schedule, Items: []store.Item{{ID: "new", When: store.After(0), Task: task}}})
			return err
		},
		"Do": func() error {
			_, err := s.Do(ctx, 0, stamp, store.Round{Lease: time.Hour, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 100, Handlers: []string{"h", "runs"}}})
			return err
		},
		"Get":    func() error { _, err := s.Get(ctx, 0, "plain"); return err },
		"List":   func() error { _, err := s.List(ctx, 0, store.Filter{}, store.Cursor{}, 1); return err },
		"Stats":  func() error { _, err := s.Stats(ctx, 0); return err },
		"Check":  func() error { _, err := s.Check(ctx); return err },
		"Repair": func() error { _, err := s.Repair(ctx, 0); return err },
		"Now":    func() error { _, err := s.Now(ctx, 0); return err },
	} {
		err := call()
		require.ErrorIs(t, err, store.ErrSchema, what)
		require.ErrorIs(t, err, store.ErrNotDone, what)
	}
}

// TestUpgrade_EndsInTheMiddle stops a Store after each step of an upgrade. Another one goes
// on, and Stores of the older version do nothing.
func TestUpgrade_EndsInTheMiddle(t *testing.T) {
	rdb := redistest.Start(t).Client()
	defer rdb.Close()
	for steps := 1; ; steps++ {
		loadOldShard(t, rdb)
		first := &stoppingClient{left: steps}
		hooked := redis.NewClient(rdb.Options())
		hooked.AddHook(first)
		s := New(hooked)
		_, err := s.Get(t.Context(), 0, "plain")
		s.Close()
		hooked.Close()
		if err == nil {
			require.Greater(t, steps, 4)
			return
		}
		require.ErrorContains(t, err, "stopped")
		if steps > 1 {
			old := openOld(rdb)
			requireRefused(t, old)
			old.Close()
		}
		next := New(rdb)
		storetest.RunUpgraded(t, next, "testdata/schema5.gob")
		next.Close()
	}
}

// A stoppingClient is a hook that lets some scripts pass, and fails all later ones.
type stoppingClient struct{ left int }

func (x *stoppingClient) DialHook(next redis.DialHook) redis.DialHook { return next }

func (x *stoppingClient) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (x *stoppingClient) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			if x.left--; x.left < 0 {
				cmd.SetErr(fmt.Errorf("stopped"))
				return cmd.Err()
			}
		}
		err := next(ctx, cmd)
		if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
			x.left++
		}
		return err
	}
}
