package diskstore

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tickless/tickless/durable/store"
)

// A shard's goroutine takes all calls that wait, carries them out in memory, one after
// the other, and writes what has changed as one batch. When it is on the disk its calls
// are answered: see sync.go. Meanwhile the next batch comes together.
// Batches reach the log in the order in which they were made, so that what a call has
// seen is on the disk before what it has done.

// maxBatch is how large a batch gets, about.
const maxBatch = 1 << 20

// serve is the shard's goroutine.
func (sh *shard) serve() {
	defer sh.s.running.Done()
	defer soon(sh.s.grouped)
	defer close(sh.groups)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-sh.line.signal:
		case <-timer.C:
		case <-sh.s.over:
			return
		}
		for more := true; more; {
			if !sh.s.awaitTables() {
				return
			}
			select {
			case sh.open <- struct{}{}:
			case <-sh.s.over:
				return
			}
			var again store.Time
			var ok bool
			if again, more, ok = sh.carryOut(); !ok {
				return
			}
			if again != never {
				timer.Reset(max(time.Millisecond, again.Sub(sh.now)))
			}
		}
	}
}

// carryOut makes a batch of what there is. It returns when the window is to be filled
// next, and whether there is more to do; or false if the store cannot go on.
func (sh *shard) carryOut() (again store.Time, more, ok bool) {
	defer func() {
		// Pebble panics when it cannot begin a new log. What the batch has changed in
		// memory does not matter any more: nothing is carried out after it.
		switch v := recover().(type) {
		case nil:
		case failure:
			sh.s.fail(v.err)
		default:
			sh.s.fail(fmt.Errorf("%w\n%s", panicked(v), debug.Stack()))
		}
	}()
	var calls []*call
	calls, more = sh.line.take(nil)
	if len(calls) > 0 {
		sh.busy.Store(true)
	}
	sh.now = sh.s.now()
	sh.batch = sh.s.db.NewBatch()
	sh.advance(sh.now)
	for _, c := range calls {
		switch {
		case sh.now > lastTime && (c.command != nil || c.round != nil):
			c.err = noTime(sh.now.Std())
		case c.command != nil:
			c.outcomes, c.err = sh.change(&c.stamp, c.command, c.bytes)
		case c.round != nil:
			c.answer, c.err = sh.round(&c.stamp, c.round)
		default:
			c.look()
		}
	}
	sh.write()
	if sh.finder != nil {
		sh.must(sh.finder.Close())
		sh.finder = nil
	}
	g := group{shard: sh, calls: calls, written: !sh.batch.Empty(), seq: sh.seq}
	if g.written {
		sh.begun.Store(sh.seq) // before anybody can read it
		sh.apply(&g)
	} else {
		sh.must(sh.batch.Close())
	}
	sh.batch = nil
	sh.written.Store(sh.seq)
	sh.tasksNow.Store(sh.pending + sh.dead + int64(sh.running))
	if len(calls) > 0 || g.written {
		sh.busy.Store(false) // before, so that nobody waits for what has come
		sh.groups <- g       // there is room
		soon(sh.s.grouped)
	} else {
		<-sh.open
	}
	again = sh.readAhead(sh.now)
	sh.trim()
	sh.refilter()
	return again, more, true
}

// apply gives the batch to the database, and asks for its sync, unless it is better done
// together with what another shard is about to write.
func (sh *shard) apply(g *group) {
	s := sh.s
	if s.config.every > 0 || s.syncs.Load() == 0 && s.othersAreBusy(sh) {
		sh.must(s.db.Apply(sh.batch, pebble.NoSync))
		// It is 0 for a batch of half a memtable or more, which Pebble has kept, so that the
		// syncer may ask for no sync. None is needed: Pebble has begun another file of the log
		// after such a batch, and closes the one before with a sync.
		g.at = uint64(sh.batch.SeqNum())
		sh.must(sh.batch.Close())
		return
	}
	s.syncs.Add(1)
	sh.must(s.db.ApplyNoSyncWait(sh.batch, pebble.Sync))
	g.at, g.batch = uint64(sh.batch.SeqNum()), sh.batch
}

// write adds to the batch what it has changed, and strips all tasks that were whole for it.
func (sh *shard) write() {
	for _, k := range sh.kinds {
		sh.sweepIndex(k)
		if k.head.behind >= sh.s.config.raise {
			sh.raiseHead(k)
		}
	}
	for _, t := range sh.touched {
		sh.writeTask(t)
		t.touched, t.body = false, false
		t.strip()
		if t.State != store.Running && !t.inWindow {
			delete(sh.tasks, t.ID)
			sh.drop(t)
		}
	}
	for _, t := range sh.loaded {
		t.strip()
	}
	clear(sh.touched)
	clear(sh.loaded)
	sh.touched, sh.loaded = sh.touched[:0], sh.loaded[:0]
	for _, k := range sh.kinds {
		sh.writeHead(sh.batch, k)
	}
	sh.writeSenders()
	if !sh.batch.Empty() {
		sh.seq++
		sh.value = appendNumbers(sh.value[:0], &sh.numbers)
		sh.set(sh.key(spaceMeta, ""), sh.value)
		sh.prove()
	}
}

func (sh *shard) writeTask(t *task) {
	old, now := t.saved, saved{state: t.State}
	if t.State == store.Pending || t.State == store.Dead {
		now.at, now.kind = t.At, t.kind.id
	}
	t.saved = now
	if old != now {
		sh.unindex(t.ID, old)
		sh.indexAs(t, now)
	}
	switch {
	case now.state == 0:
		if old.state != 0 {
			sh.delete(sh.key(spaceTask, t.ID))
		}
		return
	case t.State == store.Running:
		sh.value = appendRunning(sh.value[:0], t)
		sh.set(sh.key(spaceRunning, t.ID), sh.value)
	}
	if t.body {
		e := t.Entry
		if e.State == store.Running {
			e.State = store.Pending // it became both in this batch
		}
		sh.value = appendEntry(sh.value[:0], &e, t.kind.id)
		sh.set(sh.key(spaceTask, t.ID), sh.value)
	}
}

// unindex deletes the key by which a task was found where it was.
func (sh *shard) unindex(id string, old saved) {
	switch old.state {
	case store.Pending:
		sh.buf = appendPending(sh.buf[:0], sh.index, old.kind, old.at, id)
		if k := sh.byID[old.kind]; k != nil && old.at <= sh.now {
			k.over++
			k.head.behind++
		}
	case store.Running:
		sh.key(spaceRunning, id)
	case store.Dead:
		sh.buf = appendDead(sh.buf[:0], sh.index, old.at, id)
	default:
		return
	}
	sh.delete(sh.buf)
}

// indexAs sets the key by which a task is found where it is.
func (sh *shard) indexAs(t *task, now saved) {
	switch now.state {
	case store.Pending:
		sh.buf = appendPending(sh.buf[:0], sh.index, now.kind, now.at, t.ID)
		t.kind.head.lower(mark{now.at, t.ID})
	case store.Dead:
		sh.buf = appendDead(sh.buf[:0], sh.index, now.at, t.ID)
	default:
		return
	}
	sh.set(sh.buf, nil)
}

// sweepEvery is how many keys of a kind are deleted one by one until all in front of the
// window are deleted as a range: Pebble drops whole files for that.
const sweepEvery = 4 << 10

// sweepIndex deletes what is wholly over. What the batch puts there comes after it.
func (sh *shard) sweepIndex(k *kind) {
	if k.over < sweepEvery {
		return
	}
	k.over = 0
	from := appendPending(nil, sh.index, k.id, 0, "")
	low := sh.lowest(k)
	to := appendPending(nil, sh.index, k.id, low.at, low.id)
	sh.must(sh.batch.DeleteRange(from, to, nil))
}
