package durable

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Client schedules tasks and looks after them. Make one with [New]. It may be
// used by any number of goroutines. Every method that takes a context does one
// or a few commands of the store, ends when the context does, and is O(log n)
// in the number of tasks unless it says otherwise.
type Client struct {
	store *timedStore
	log   *slog.Logger
	lanes lanes
	// schedules are those of WithSchedule.
	schedules map[string]Schedule
	maxTask   int // bytes
	// schedule is what Schedule and ScheduleBatch call, nil if there is no middleware.
	schedule ScheduleFunc
}

// New returns a Client for the tasks in a store, which stays the caller's to close. New
// does not use the store: [Client.Check] does. It panics if st is
// nil, as a pointer in the interface too, and if an option is nil.
func New(st store.Store, opts ...Option) *Client {
	if v := reflect.ValueOf(st); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		panic("durable: New with a nil Store")
	}
	config := config{log: slog.Default(), maxTask: MaxTask}
	for i, o := range opts {
		notNil("New", i, o)
		o.apply(&config)
	}
	c := &Client{store: &timedStore{Store: st}, log: config.log, lanes: lanes{client: newName()}, schedules: config.schedules, maxTask: config.maxTask}
	c.schedule = c.through(config.around)
	return c
}

// Store returns the Client's store.
func (c *Client) Store() store.Store { return c.store.Store }

func (c *Client) shardOf(id string) int { return store.ShardOf(id, c.store.Shards()) }

// A Health is what [Client.Check] has found.
type Health = store.Health

// Check asks whether the store can be used, and how safely it keeps tasks. What rules its
// use out is an error, such as [ErrSchema] and [ErrUnsafe]. What is worth knowing is in the
// Warnings, for example that the tasks are paused. O(shards).
func (c *Client) Check(ctx context.Context) (Health, error) {
	h, err := c.store.Check(ctx)
	if err != nil {
		return h, explain(err)
	}
	st, err := c.Stats(ctx)
	if st.Paused > 0 {
		h.Warnings = append(h.Warnings, textPaused)
	}
	return h, err
}

const textPaused = "the store is paused: no task is claimed until Resume"

// A Repair is what [Client.Repair] has looked at and put right.
type Repair = store.Repair

// Repair looks at every task and sees that it is in exactly one place, pending,
// running or dead, and puts right what is not. Nothing here needs it as long as the
// store keeps what it has acknowledged: it is for what a failover, a crash or a disk has
// left. It works in small steps beside the traffic. O(n).
func (c *Client) Repair(ctx context.Context) (Repair, error) {
	var total Repair
	for shard := range c.store.Shards() {
		r, err := c.store.Repair(ctx, shard)
		total.Looked += r.Looked
		total.Requeued += r.Requeued
		total.Doubled += r.Doubled
		total.Orphaned += r.Orphaned
		if err != nil {
			return total, explain(err)
		}
	}
	return total, nil
}

// Pause keeps workers from claiming tasks, until Resume; what they have claimed starts or
// goes on, and scheduling goes on too. O(shards).
func (c *Client) Pause(ctx context.Context) error { return c.everywhere(ctx, store.Pause) }

// Resume ends a pause. What became due meanwhile runs at once. O(shards).
func (c *Client) Resume(ctx context.Context) error { return c.everywhere(ctx, store.Resume) }

// everywhere carries out a command that has no items in all shards.
func (c *Client) everywhere(ctx context.Context, op store.Op) error {
	x := c.newCommand(ctx, store.Command{Op: op}, c.store.Shards())
	x.out = nil // it has no tasks
	for shard := range c.store.Shards() {
		x.addTo(shard, shard, 0, nil)
	}
	_, err := x.do(ctx)
	return err
}

// sleep waits for d, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
