package durable_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func setOf(body string, keys ...string) (items []durable.Item) {
	for _, key := range keys {
		items = append(items, durable.Item{Task: durable.Task{Key: key, Handler: "h", Cron: "0 9 * * *", Body: []byte(body)}, When: durable.Next()})
	}
	return items
}

// tasksByKey returns the bodies of all tasks.
func tasksByKey(t *testing.T, c *durable.Client) map[string]string {
	bodies := map[string]string{}
	for info, err := range c.List(ctx, durable.Filter{}) {
		require.NoError(t, err)
		bodies[info.ID] = string(info.Task.Body)
	}
	return bodies
}

func TestSync(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memstore.Store) {
		mem := memstore.New(memstore.WithShards(8))
		defer mem.Close()
		c := durable.New(mem, quiet)
		var keys []string
		want := map[string]string{"mine": ""}
		for i := range 40 {
			keys = append(keys, fmt.Sprint("task ", i))
			want[keys[i]] = "1"
		}
		_, err := c.Schedule(ctx, durable.Task{Key: "mine", Handler: "h"}, durable.After(time.Hour))
		require.NoError(t, err)
		synced, err := c.Sync(ctx, "app", 1, setOf("1", keys...))
		require.NoError(t, err)
		require.False(t, synced.Superseded)
		require.Len(t, synced.Outcomes, 40)
		require.NotContains(t, synced.Outcomes, durable.Kept)
		require.Equal(t, want, tasksByKey(t, c))

		synced, err = c.Sync(ctx, "app", 2, setOf("2", keys[30:]...))
		require.NoError(t, err)
		require.False(t, synced.Superseded)
		want = map[string]string{"mine": ""}
		for _, key := range keys[30:] {
			want[key] = "2"
		}
		require.Equal(t, want, tasksByKey(t, c))

		// An old pod starts again.
		synced, err = c.Sync(ctx, "app", 1, setOf("1", keys...))
		require.NoError(t, err)
		require.True(t, synced.Superseded)
		require.Equal(t, want, tasksByKey(t, c))

		// Old and new pods start at the same time, again and again.
		var pods sync.WaitGroup
		for version := range int64(6) {
			pods.Go(func() {
				for range 20 {
					_, err := c.Sync(ctx, "app", 3+version, setOf(fmt.Sprint(3+version), keys[version:20+version]...))
					require.NoError(t, err)
				}
			})
		}
		pods.Wait()
		want = map[string]string{"mine": ""}
		for _, key := range keys[5:25] {
			want[key] = "8"
		}
		require.Equal(t, want, tasksByKey(t, c))

		synced, err = c.Sync(ctx, "app", 9, nil)
		require.NoError(t, err)
		require.Equal(t, durable.Synced{Outcomes: []durable.Outcome{}}, synced)
		require.Equal(t, map[string]string{"mine": ""}, tasksByKey(t, c))
	})
}

// A period keeps its phase, and a cron whose zone has other rules now gets its new time.
func TestSync_Times(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		weekly := []durable.Item{
			{Task: durable.Task{Key: "every", Handler: "h", Every: 7 * 24 * time.Hour}, When: durable.Next()},
			{Task: durable.Task{Key: "cron", Handler: "h", Cron: "@every 168h"}, When: durable.Next()},
			{Task: durable.Task{Key: "nine", Handler: "h", Cron: "0 9 * * *"}, When: durable.Next()},
		}
		begin := time.Now()
		_, err := c.Sync(ctx, "app", 1, weekly)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		// As if the zone's rules had been others.
		_, err = c.Reschedule(ctx, "nine", durable.At(begin.Add(20*time.Hour)))
		require.NoError(t, err)
		synced, err := c.Sync(ctx, "app", 2, weekly)
		require.NoError(t, err)
		require.Equal(t, []durable.Outcome{durable.Kept, durable.Kept, durable.Moved}, synced.Outcomes)
		for key, want := range map[string]time.Duration{"every": 7 * 24 * time.Hour, "cron": 7 * 24 * time.Hour, "nine": 9 * time.Hour} {
			info, err := c.Get(ctx, key)
			require.NoError(t, err)
			require.Equal(t, want, info.At.Sub(begin), key)
		}
	})
}

func TestSync_Refuses(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		once := []durable.Item{{Task: durable.Task{Key: "once", Handler: "h"}, When: durable.After(0)}}
		for name, call := range map[string]func() error{
			"no name":         func() error { _, err := c.Sync(ctx, "", 1, nil); return err },
			"a version":       func() error { _, err := c.Sync(ctx, "app", -1, nil); return err },
			"no repetition":   func() error { _, err := c.Sync(ctx, "app", 1, once); return err },
			"no key":          func() error { _, err := c.Sync(ctx, "app", 1, setOf("", "a", "")); return err },
			"a key twice":     func() error { _, err := c.Sync(ctx, "app", 1, setOf("", "a", "a")); return err },
			"many":            func() error { _, err := c.Sync(ctx, "app", 1, setOf("", make([]string, 1001)...)); return err },
			"an invalid task": func() error { _, err := c.Sync(ctx, "app", 1, setOf("", "a\x00b")); return err },
		} {
			require.ErrorIs(t, call(), durable.ErrInvalid, name)
		}
		require.Empty(t, tasksByKey(t, c))
	})
}
