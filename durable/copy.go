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
// in dst too. Limits, counters and a pause of the store are not copied. If dst and src are the
// same value, the error is an [ErrInvalid]. If src is damaged, the rest is copied, and the error
// is an [ErrSkipped].
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
	if err != nil && !errors.Is(err, store.ErrDamaged) {
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

// ErrSkipped is returned by [Copy] and [Export] if they have skipped damaged tasks, and copied
// all others. It wraps a [store.ErrDamaged], and its text says what was skipped.
var ErrSkipped = errors.New("durable: damaged tasks were skipped")

// isComplete reports whether forEachEntry has read to the end.
func isComplete(err error) bool {
	return err == nil || errors.Is(err, ErrChanged) || errors.Is(err, ErrSkipped)
}

type damages struct {
	first []error
	count int
}

func (d *damages) add(err error) {
	if d.count++; len(d.first) < 20 {
		d.first = append(d.first, err)
	}
}

func (d *damages) err() error {
	if d.count == 0 {
		return nil
	}
	more := ""
	if n := d.count - len(d.first); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w: %w%s", ErrSkipped, errors.Join(d.first...), more)
}

// readShard calls f with the entries of a shard, by state and time. If a page cannot be read
// because of damage, it reads the entries before it one by one, and goes on at the next time
// that can be read.
func readShard(ctx context.Context, st store.Store, shard int, skipped *damages, f func(*store.Entry) error) error {
	for state := store.Pending; state <= store.Past; state++ {
		filter, cursor, limit := store.Filter{State: state}, store.Cursor{}, 256
		for {
			p, err := st.List(ctx, shard, filter, cursor, limit)
			switch {
			case errors.Is(err, store.ErrDamaged) && limit > 1:
				limit = 1
				continue
			case errors.Is(err, store.ErrDamaged):
				from := max(filter.From, cursor.At)
				if filter.From, err = behindDamage(ctx, st, shard, state, from); err != nil {
					return err
				}
				until := "the end"
				if filter.From != store.Never {
					until = filter.From.Std().UTC().Format(time.RFC3339Nano)
				}
				skipped.add(fmt.Errorf("durable: %v tasks from %s to %s: %w", state, from.Std().UTC().Format(time.RFC3339Nano), until, store.ErrDamaged))
				p.Next, limit = store.Cursor{State: state, At: filter.From}, 256
			case err != nil:
				return clientError(err)
			}
			for i := range p.Entries {
				if err := f(&p.Entries[i]); err != nil {
					return err
				}
			}
			if cursor = p.Next; cursor == (store.Cursor{}) || filter.From == store.Never {
				break
			}
		}
	}
	return nil
}

// behindDamage returns a time from which on the entries of a state can be read, soon after from,
// or Never.
func behindDamage(ctx context.Context, st store.Store, shard int, state store.State, from store.Time) (store.Time, error) {
	isReadable := func(at store.Time) (bool, error) {
		_, err := st.List(ctx, shard, store.Filter{State: state, From: at}, store.Cursor{}, 1)
		if errors.Is(err, store.ErrDamaged) {
			return false, nil
		}
		return err == nil, clientError(err)
	}
	low, high := store.Time(0), store.Time(1) // distances: not readable, and readable
	for {
		ok, err := isReadable(from + high)
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		if low, high = high, 2*high; from+high > store.Farthest {
			return store.Never, nil
		}
	}
	for high-low > 1 {
		middle := (low + high) / 2
		ok, err := isReadable(from + middle)
		switch {
		case err != nil:
			return 0, err
		case ok:
			high = middle
		default:
			low = middle
		}
	}
	return from + high, nil
}

// forEachEntry calls f with each entry that a copy must contain. It returns ErrChanged
// if the store was used meanwhile, and ErrSkipped if it has skipped damaged tasks.
func forEachEntry(ctx context.Context, c *Client, f func(context.Context, *store.Entry) error) error {
	var skipped damages
	before, err := c.Stats(ctx)
	switch {
	case errors.Is(err, store.ErrDamaged):
		skipped.add(err)
	case err != nil:
		return err
	}
	var countByState [store.Past + 1]int64
	for shard := range c.store.Shards() {
		err := readShard(ctx, c.store, shard, &skipped, func(e *store.Entry) error {
			if e.Damaged {
				_, err := infoOf(e)
				skipped.add(err)
				return nil
			}
			countByState[e.State]++
			if !e.Continues() {
				return nil // the task was cancelled
			}
			return f(ctx, e)
		})
		if err != nil {
			return err
		}
	}
	if err := skipped.err(); err != nil {
		return err // the counts differ
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
