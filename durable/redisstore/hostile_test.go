package redisstore

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

// TestHostileRedis uses a shard in which somebody has written anything.
func TestHostileRedis(t *testing.T) {
	rdb := redistest.Start(t).Client()
	defer rdb.Close()
	s := New(rdb, WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	defer s.Close()
	_, err := s.Now(t.Context(), 0)
	require.NoError(t, err)
	key := func(name string) string { return keyOf(s.shards[0], name) }
	do := func(args ...any) { require.NoError(t, rdb.Do(t.Context(), args...).Err()) }
	due := func(kind, id string, at any) {
		do("ZADD", key("due:")+kind, at, id)
		do("ZADD", key("kinds"), at, kind)
	}
	for i, record := range storetest.HostileRecords() {
		x := store.Task{Handler: "h", Record: record}
		text := encodeRecord(&x, "0000000000000001") + "0000000000000002"
		for where, id := range map[string]string{"due": fmt.Sprint("k", i), "dead": fmt.Sprint("dead", i), "past": store.RunID(fmt.Sprint("k", i), i)} {
			do("HSET", key("task"), id, text)
			if where == "due" {
				due("1:h", id, 1)
			} else {
				do("ZADD", key(where), 5e15, id)
			}
		}
	}
	runs := []string{"", "x", "0 0 0 0 - - 1:h", "-1 -1 -1 -1 - - 1:h", "99999999999999999999 1 1 99999999999999999999 cna 99999999999999999999 1:h", "5 99999999999 99999999999 1 n 7 1:h", "7 1 0 5 - - ", "0 1 1 1 \x00 \xff 9:h"}
	for i, r := range runs {
		for j, record := range []string{"", "short", "00000000000000014\x00\x031:h\x01genera\x00", "x000000000000001\xff\xff\xff", "00000000000000014\xff\xff1:h", "99999999999999994\x00\x031:hd0000000000000017"} {
			for _, where := range []string{"due", "lease", "dead", "past", "none"} {
				id := fmt.Sprintf("k%d/%d/%s", i, j, where)
				do("HSET", key("task"), id, record)
				if r != "" {
					do("HSET", key("run"), id, r)
				}
				do("HSET", key("err"), id, []string{"1 2 3:abc", "9 9 99999999999:x", "-1 -1 -1:", "\x00\xff"}[(i+j)%4])
				do("HSET", key("follows"), id, record)
				switch where {
				case "due":
					due("1:h", id, []any{1, "-inf", "+inf", 1.5, -5}[(i+j)%5])
				case "none":
				default:
					do("ZADD", key(where), []any{1, "-inf", "+inf", 1e300}[(i+j)%4], id)
				}
			}
		}
	}
	for _, kind := range []string{"", "x", "99:h", "1:", "0:", "-1:h", "1:hsched", "3:h\xff\x00", "1:h\x00"} {
		due(kind, "nothing", 1)
		do("ZADD", key("kinds"), 1, kind+"empty")
		do("HSET", key("task"), "kind"+kind, "0000000000000001"+"4\x00"+string([]byte{byte(len(kind))})+kind+"\x01")
		due(kind, "kind"+kind, 1)
	}
	for _, id := range []string{"\xff", "\x00", "k\x00h", "k\x00rx", "absent\x00r000000000001"} {
		for _, where := range []string{"lease", "dead", "past", "ended"} {
			do("ZADD", key(where), 1, id)
		}
	}
	do("ZADD", key("wake"), 0, "nobody", -1, "\xff")
	for i, text := range []string{"", "\x00h", "x\x00h99:h", "5\x00h1:h\x00s-1:x", "99999999999999999999\x00h1:h"} {
		do("HSET", key("crew"), fmt.Sprint("s:", i), text)
		do("HSET", key("meta"), fmt.Sprint("s:", i), []string{"", "x", "1", "1 x o", "1 99999999999999999999 a l x y"}[i])
		do("HSET", key("limits"), fmt.Sprintf("%d:limited", i), []string{"", "x", "1 1 1 -5 0 0 0", "-1 0 0 0 0 0 0", "0 1 1 1 99999999999999999999 1 inf"}[i])
	}
	do("HSET", key("meta"), "limits", 1, "keeps", "x", "owner", "nobody", "fence", "x", "claimed", "1e300", "armed", "-1", "called", "inf")
	storetest.RunHostile(t, s)
}
