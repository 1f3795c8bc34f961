package durable

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/store"
)

// A Client schedules and manages the tasks of a store. It is safe for concurrent use.
// Methods that take a context access the store, and return when the context ends. With
// n tasks they take O(log n), unless their comments say otherwise.
type Client struct {
	store   *timedStore
	random  *random.Source // nil except in a simulation
	log     *slog.Logger
	senders senderPool
	// schedules has the schedules of WithSchedule, by name.
	schedules    map[string]Schedule
	maxTaskBytes int
	// wrappedScheduleFunc is ScheduleBatch wrapped in the middleware, or nil if there
	// is none.
	wrappedScheduleFunc ScheduleFunc
}

// New returns a Client for a store. It does not access the store: to test the store,
// call [Client.Check]. The caller must close the store. New panics if st or an option
// is nil.
func New(st store.Store, opts ...Option) *Client {
	if v := reflect.ValueOf(st); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		panic("durable: New: nil Store")
	}
	config := config{log: slog.Default(), maxTaskBytes: MaxTask}
	for i, o := range opts {
		panicIfNil("New", i, o)
		o.apply(&config)
	}
	c := &Client{store: &timedStore{Store: st}, log: config.log, senders: senderPool{clientName: newUniqueName()}, schedules: config.schedules, maxTaskBytes: config.maxTaskBytes}
	if own, ok := st.(interface{ Random() *random.Source }); ok {
		c.random = own.Random()
	}
	c.wrappedScheduleFunc = c.wrapScheduleFunc(config.middleware)
	return c
}

// Store returns the Client's store.
func (c *Client) Store() store.Store { return c.store.Store }

func (c *Client) shardOf(id string) int { return store.ShardOf(id, c.store.Shards()) }

// A Health is the result of [Client.Check].
type Health = store.Health

// Check reports whether the store is usable. If it is not, Check returns an error, such
// as [ErrSchema] or [ErrUnsafe]. Health.Warnings has lesser problems, for example that
// the store is paused. O(shards).
func (c *Client) Check(ctx context.Context) (Health, error) {
	h, err := c.store.Check(ctx)
	if err != nil {
		return h, clientError(err)
	}
	st, err := c.Stats(ctx)
	if st.Paused > 0 {
		h.Warnings = append(h.Warnings, pausedWarning)
	}
	for _, name := range slices.Sorted(maps.Keys(st.PausedHandlers)) {
		p := pauseOf(st.PausedHandlers[name])
		h.Warnings = append(h.Warnings, fmt.Sprintf("the handler %q is paused since %s: %s", name, p.Since.UTC().Format(time.RFC3339), cmp.Or(p.Note, "no note")))
	}
	return h, err
}

const pausedWarning = "the store is paused: no task starts until it is resumed"

// A Repair counts what [Client.Repair] has checked and corrected.
type Repair = store.Repair

// Repair mends a store that has lost acknowledged data, for example in a failover.
// After Repair, each task has exactly one state. The store may be in use meanwhile.
// O(n) for n tasks.
func (c *Client) Repair(ctx context.Context) (Repair, error) {
	var total Repair
	for shard := range c.store.Shards() {
		r, err := c.store.Repair(ctx, shard)
		total.Looked += r.Looked
		total.Requeued += r.Requeued
		total.Doubled += r.Doubled
		total.Orphaned += r.Orphaned
		if err != nil {
			return total, clientError(err)
		}
	}
	return total, nil
}

// Pause stops workers from claiming tasks until Resume. Claimed tasks still run, and
// tasks can be scheduled. After an error some of the store's shards may be paused. The
// error wraps [ErrNotDone] only if none is. O(shards).
func (c *Client) Pause(ctx context.Context) error {
	_, err := c.sendToAllShards(ctx, store.Command{Op: store.Pause})
	return err
}

// Resume ends a pause. Tasks that became due during the pause run immediately.
// O(shards).
func (c *Client) Resume(ctx context.Context) error {
	_, err := c.sendToAllShards(ctx, store.Command{Op: store.Resume})
	return err
}

// sendToAllShards sends the same items to each shard. It returns the outcomes of the shards,
// if there is an item.
func (c *Client) sendToAllShards(ctx context.Context, template store.Command, items ...store.Item) ([]Outcome, error) {
	x := c.newCommand(ctx, template, c.store.Shards())
	if len(items) == 0 {
		x.outcomes = nil // the command has no tasks
	}
	for shard := range c.store.Shards() {
		x.addToShard(shard, shard, 0, items)
	}
	outcomes, err := x.do(ctx)
	if err != nil && slices.Contains(x.errs, nil) {
		err = partlyDoneError{err}
	}
	return outcomes, err
}

// Stats are the numbers of tasks and the counters, summed over all shards.
type Stats struct {
	store.Stats
	// Paused is the number of paused shards. Either all shards are paused or none,
	// unless a Pause or Resume failed halfway.
	Paused int
}

// Stats returns the sums over all shards, which it reads one after the other.
// O(shards).
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	var sum Stats
	for shard := range c.store.Shards() {
		st, err := c.store.Stats(ctx, shard)
		if err != nil {
			return Stats{}, clientError(err)
		}
		if st.Paused {
			sum.Paused++
		}
		sum.Add(st)
	}
	return sum, nil
}
