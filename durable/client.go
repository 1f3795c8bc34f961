package durable

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Client schedules and manages tasks. Make one with [New]. Any number of goroutines
// may use it. A method that takes a context sends one or a few commands to the store. It
// returns at once if the context ends. With n tasks it takes O(log n) unless it says
// otherwise.
type Client struct {
	store   *timedStore
	log     *slog.Logger
	senders senders
	// schedules has the schedules of WithSchedule, by name.
	schedules map[string]Schedule
	maxTask   int // bytes
	// wrappedSchedule is ScheduleBatch inside the middleware. It is nil if there is no
	// middleware.
	wrappedSchedule ScheduleFunc
}

// New returns a Client for the tasks in a store. It does not access the store;
// [Client.Check] does. The caller closes the store. New panics if an option is nil, or
// if st is nil or contains a nil pointer.
func New(st store.Store, opts ...Option) *Client {
	if v := reflect.ValueOf(st); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		panic("durable: New: nil Store")
	}
	config := config{log: slog.Default(), maxTask: MaxTask}
	for i, o := range opts {
		notNil("New", i, o)
		o.apply(&config)
	}
	c := &Client{store: &timedStore{Store: st}, log: config.log, senders: senders{clientName: newName()}, schedules: config.schedules, maxTask: config.maxTask}
	c.wrappedSchedule = c.wrapSchedule(config.middleware)
	return c
}

// Store returns the Client's store.
func (c *Client) Store() store.Store { return c.store.Store }

func (c *Client) shardOf(id string) int { return store.ShardOf(id, c.store.Shards()) }

// A Health is the result of [Client.Check].
type Health = store.Health

// Check reports whether the store is usable, and how safely it keeps tasks. A problem
// that prevents its use is an error, such as [ErrSchema] or [ErrUnsafe]. Other findings
// are in the Warnings, for example that the store is paused. O(shards).
func (c *Client) Check(ctx context.Context) (Health, error) {
	h, err := c.store.Check(ctx)
	if err != nil {
		return h, clientError(err)
	}
	st, err := c.Stats(ctx)
	if st.Paused > 0 {
		h.Warnings = append(h.Warnings, pausedWarning)
	}
	return h, err
}

const pausedWarning = "the store is paused: no task is claimed until Resume"

// A Repair counts what [Client.Repair] has checked and corrected.
type Repair = store.Repair

// Repair corrects tasks that are not in exactly one of the states pending, running and
// dead. Call it only if the store has lost acknowledged data, for example in a crash or
// a failover. It works in small steps, and the store may be in use meanwhile. With n
// tasks it takes O(n).
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
// tasks can be scheduled. O(shards).
func (c *Client) Pause(ctx context.Context) error { return c.sendToAllShards(ctx, store.Pause) }

// Resume ends a pause. Tasks that became due during the pause run at once. O(shards).
func (c *Client) Resume(ctx context.Context) error { return c.sendToAllShards(ctx, store.Resume) }

func (c *Client) sendToAllShards(ctx context.Context, op store.Op) error {
	x := c.newCommand(ctx, store.Command{Op: op}, c.store.Shards())
	x.outcomes = nil // the command has no tasks
	for shard := range c.store.Shards() {
		x.addTo(shard, shard, 0, nil)
	}
	_, err := x.do(ctx)
	return err
}

// sleep waits for d. If the context ends first, it returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
