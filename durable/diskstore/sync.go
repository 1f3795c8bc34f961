package diskstore

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A group is what a shard has carried out together, and the calls that wait until it is
// on the disk.
type group struct {
	shard   *shard
	calls   []*call
	written bool  // something was written
	seq     int64 // of the batch
	// at is where the batch is in the log, and batch the batch itself if its sync was
	// asked for.
	at    uint64
	batch *pebble.Batch
}

// maxOpen is how many batches of a shard there are that were not answered: one whose
// sync is under way, and the next. What comes then waits, and makes a larger batch.
const maxOpen = 2

// A shard asks for the sync of what it has written itself, so that the next sync begins
// when the one before ends. If none is under way, and other shards are about to write,
// one sync is for all of them: the syncer asks for it. It has the groups in their order,
// and hands them to the answerer, which waits for the syncs.
type syncer struct {
	s      *Store
	shards []*shard // that are not over
	turns  chan turn
}

// A turn is groups that are synced together, and the batches for whose syncs that has to
// wait.
type turn struct {
	groups []group
	syncs  []*pebble.Batch
}

func newSyncer(s *Store) *syncer {
	return &syncer{s, s.shards, make(chan turn, maxOpen*len(s.shards))}
}

// run is the syncer's goroutine. It ends with the shards.
func (y *syncer) run() {
	defer y.s.running.Done()
	defer close(y.turns)
	for len(y.shards) > 0 {
		select {
		case <-y.s.grouped:
		case <-y.s.failed:
			return
		}
		for {
			t, ok := y.gather()
			if !ok {
				break
			}
			if err := y.ask(&t); err != nil {
				y.s.fail(err)
				return
			}
			y.turns <- t // there is room for as many as there are groups
		}
	}
}

// gather takes the groups that there are. If a sync has to be asked for, and none is
// under way, it takes those that are coming as well. It returns false if there is none,
// or the store has failed.
func (y *syncer) gather() (t turn, ok bool) {
	var coming, left []*shard
	for _, sh := range y.shards {
		select {
		case g, ok := <-sh.groups:
			if !ok {
				continue
			}
			t.groups = append(t.groups, g)
		default:
			if sh.busy.Load() {
				coming = append(coming, sh)
			}
		}
		left = append(left, sh)
	}
	y.shards = left
	if t.asks() && y.s.syncs.Load() == 0 {
		for _, sh := range coming {
			g, ok := sh.await()
			if !ok {
				return t, false
			}
			t.groups = append(t.groups, g)
		}
	}
	return t, len(t.groups) > 0
}

// await returns the group that comes of a shard that is busy, or false if the store has
// failed.
func (sh *shard) await() (g group, ok bool) {
	select {
	case g, ok = <-sh.groups: // which is closed when the shard is over
		return g, ok
	case <-sh.s.failed:
		return g, false
	}
}

// asks reports whether a sync has to be asked for that no shard has asked for.
func (t *turn) asks() bool {
	last, asked := uint64(0), uint64(0)
	for i := range t.groups {
		g := &t.groups[i]
		if last = max(last, g.at); g.batch != nil {
			asked = max(asked, g.at)
		}
	}
	return last > asked
}

// ask asks for the sync of a turn, if that has to be.
func (y *syncer) ask(t *turn) (err error) {
	if y.s.config.every > 0 {
		if t.asks() {
			select {
			case y.s.unsynced <- time.Now():
			default: // what came before is not synced either
			}
		}
		return nil
	}
	for i := range t.groups {
		if b := t.groups[i].batch; b != nil {
			t.syncs = append(t.syncs, b)
		}
	}
	if !t.asks() {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w\n%s", panicked(v), debug.Stack())
		}
	}()
	// What is in the log before this is synced with it.
	b := y.s.db.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		return err
	}
	y.s.syncs.Add(1)
	t.syncs = append(t.syncs, b)
	return y.s.db.ApplyNoSyncWait(b, pebble.Sync)
}

// answer is the goroutine that answers the calls of what is on the disk.
func (y *syncer) answer() {
	defer y.s.running.Done()
	for t := range y.turns {
		if err := y.wait(&t); err != nil {
			y.s.fail(err)
			return
		}
		for i := range t.groups {
			g := &t.groups[i]
			if len(t.syncs) > 0 {
				g.shard.synced.Store(g.seq)
			}
			for _, c := range g.calls {
				c.done <- struct{}{} // there is room
			}
			<-g.shard.open
		}
	}
}

// wait returns when the groups of a turn are on the disk, if they have to be.
func (y *syncer) wait(t *turn) error {
	for _, b := range t.syncs {
		err := b.SyncWait()
		y.s.syncs.Add(-1)
		if err == nil {
			err = b.Close()
		}
		if err != nil {
			return err
		}
	}
	if len(t.syncs) == 0 {
		return nil
	}
	return y.s.findLog()
}

// othersAreBusy reports whether another shard carries calls out.
func (s *Store) othersAreBusy(but *shard) bool {
	for _, sh := range s.shards {
		if sh != but && sh.busy.Load() {
			return true
		}
	}
	return false
}
