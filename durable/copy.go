package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Copied is the result of [Copy] or [Import].
type Copied struct {
	Added int // tasks added to the store
	Kept  int // tasks not copied because the store already had their key
	// Refused counts the tasks that cannot be added, for example because their names are
	// not text, as older versions allowed. The others are added, and the error is an
	// [ErrInvalid] that names the first of them.
	Refused int
}

// ErrChanged is returned by [Copy] and [Export] if the source was used during the call.
// The copy may lack tasks, or contain tasks that the source no longer has.
var ErrChanged = errors.New("durable: the source was used during the copy: stop its workers and clients, empty the destination, and repeat")

// Copy copies all tasks and dead letters from src to dst. The stores may have different
// types and numbers of shards. src does not change. Handlers that src has paused are paused
// in dst too. Limits, counters and a pause of the store are not copied. If dst and src are the same value, the error is an [ErrInvalid].
//
// To move to another store:
//
//  1. Stop the workers and clients of src.
//  2. Call Copy. It pauses dst, so that no task runs yet. A running task is copied as due
//     immediately. Tasks that dst already has do not change.
//  3. After an error, repeat Copy. But if src was used since step 1, as after [ErrChanged],
//     empty dst first: it may have tasks that src has finished.
//  4. Call [Client.Resume] for dst. If a Copy failed, wait a minute first: until then one
//     of its commands may still arrive.
//
// The cost is that of [Client.List] and of O(n) writes.
func Copy(ctx context.Context, dst, src store.Store) (Copied, error) {
	dstClient, srcClient := New(dst), New(src)
	if dst == src {
		return Copied{}, invalidError("Copy: the destination is the source")
	}
	st, err := srcClient.Stats(ctx)
	if err != nil {
		return Copied{}, err
	}
	c, err := newImporter(ctx, dstClient, st.PausedHandlers)
	if err != nil {
		return Copied{}, err
	}
	err = forEachEntry(ctx, srcClient, c.addEntry)
	if isComplete(err) {
		err = errors.Join(c.sendItems(ctx), c.refusal, err)
	}
	return c.copied, err
}

var errSkipped = errors.New("durable: damaged tasks were skipped")

// isComplete reports whether forEachEntry has read to the end.
func isComplete(err error) bool {
	return err == nil || errors.Is(err, ErrChanged) || errors.Is(err, errSkipped)
}

// forEachEntry calls f with each entry that a copy must contain. It returns ErrChanged
// if the store was used meanwhile, and store.ErrDamaged if it has skipped damaged tasks.
func forEachEntry(ctx context.Context, c *Client, f func(context.Context, *store.Entry) error) error {
	before, err := c.Stats(ctx)
	if err != nil {
		return err
	}
	var countByState [store.Past + 1]int64
	var damaged error
	for e, err := range c.listEntries(ctx, store.Filter{}, store.Cursor{}, 256, nil) {
		if err != nil {
			return err
		}
		if e.Damaged {
			_, err := infoOf(&e)
			damaged = cmp.Or(damaged, err)
			continue
		}
		countByState[e.State]++
		if !e.Continues() {
			continue // the task was cancelled
		}
		if err := f(ctx, &e); err != nil {
			return err
		}
	}
	if damaged != nil {
		return fmt.Errorf("%w: %w", errSkipped, damaged) // the counts differ
	}
	after, err := c.Stats(ctx)
	if err != nil {
		return err
	}
	for _, st := range []Stats{before, after} {
		if st.Pending != countByState[store.Pending] || st.Running != countByState[store.Running] || st.Dead != countByState[store.Dead] || st.Counters != before.Counters {
			return ErrChanged
		}
	}
	return nil
}

// An importer sends entries to a store, in batches.
type importer struct {
	dst         *Client
	items       []store.Item // collected, not sent yet
	recordBytes int          // size of their records
	copied      Copied       // the result so far
	refusal     error        // for the first task that was refused
}

const (
	// importTimeout is how long an import may take to reach the store. A later one could
	// arrive after Resume, and add tasks again that have already run.
	importTimeout = time.Minute
	// importBatchBytes is how many bytes of records are collected before they are sent.
	importBatchBytes = maxShardsAtOnce * maxChunkBytes
)

// newImporter pauses the store, and the handlers that are paused in the source.
func newImporter(ctx context.Context, dst *Client, paused map[string]store.HandlerPause) (*importer, error) {
	if err := dst.Pause(ctx); err != nil {
		return nil, fmt.Errorf("durable: pausing the destination: %w", err)
	}
	for _, handler := range slices.Sorted(maps.Keys(paused)) {
		if err := dst.PauseHandler(ctx, handler, paused[handler].Note); err != nil {
			return nil, fmt.Errorf("durable: pausing a handler of the destination: %w", err)
		}
	}
	return &importer{dst: dst}, nil
}

func (c *importer) addEntry(ctx context.Context, e *store.Entry) error {
	for i := range e.Failures { // older versions kept any bytes
		e.Failures[i].Text = strings.ToValidUTF8(e.Failures[i].Text, "")
	}
	item := store.Item{ID: e.ID, Entry: e}
	command := store.Command{Op: store.Import, Items: []store.Item{item}}
	if err := command.Check(&store.Stamp{Sender: "import", Number: 1}); err != nil {
		c.refusal = cmp.Or(c.refusal, clientError(err))
		c.copied.Refused++
		return nil
	}
	c.items = append(c.items, item)
	c.recordBytes += len(e.Record)
	if len(c.items) < store.MaxBatch*min(c.dst.store.Shards(), maxShardsAtOnce) && c.recordBytes < importBatchBytes {
		return nil
	}
	return c.sendItems(ctx)
}

func (c *importer) sendItems(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	x := c.dst.newCommand(ctx, store.Command{Op: store.Import}, len(c.items))
	for i, item := range c.items {
		x.addItem(i, item)
	}
	c.items, c.recordBytes = nil, 0
	outcomes, err := x.do(ctx)
	for _, o := range outcomes {
		switch o {
		case Created:
			c.copied.Added++
		case Kept:
			c.copied.Kept++
		}
	}
	return err
}
