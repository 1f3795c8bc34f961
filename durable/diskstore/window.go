package diskstore

import (
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timingwheel"
)

// The window is what a shard has of its Pending tasks in memory: those that are due
// soon. Each kind has a mark, and every task of the kind that comes before the mark is
// in the window; those after it need not be. What is scheduled before the mark goes into
// the window. What is scheduled after it, and not soon, lowers the mark if it has to:
// nothing else is known to be there.
//
// A kind's window is filled from the disk, in the order of time, when its mark comes
// near: well before it is due, so that no claim waits for that. When a window has grown
// to more than twice its size its later tasks are dropped, and the mark lowered to the
// first of them.
const (
	// windowSize is how many tasks a shard's window has. 16k tasks take about 6 MB, and
	// are half a second of work at 30k tasks a second.
	windowSize = 16 << 10
	// horizon is how soon what goes into the window is due, and ahead how long before
	// the mark is due the window is filled.
	horizon = time.Minute
	ahead   = horizon / 2
	// pageSize is how many keys are read at a time: half a millisecond or so, for which
	// the shard's commands wait.
	pageSize = 512
	// leastSize is the part of the window that any kind has, however many there are.
	leastSize = 64
)

// never is later than any time.
const never = store.Time(math.MaxInt64)

var everything = mark{at: never}

// The wheels count microseconds, so that nothing is rounded.
const wheelSize = 256

func newWheel(now store.Time) *timingwheel.Wheel[*task] {
	w, err := timingwheel.New[*task](1, wheelSize, int64(now))
	if err != nil {
		panic(err) // the clock shows a time before 1970
	}
	return w
}

// size is how many tasks the window of a kind may have.
func (sh *shard) size() int { return max(leastSize, sh.s.config.window/max(1, len(sh.kinds))) }

// place puts a Pending task that is in no place into the window, if it belongs there.
func (sh *shard) place(t *task, now store.Time) {
	k := t.kind
	if t.mark().compare(k.mark) >= 0 {
		return
	}
	if t.At > now.Add(horizon) {
		k.mark = t.mark()
		return
	}
	sh.enter(t)
}

// enter puts a Pending task into the window.
func (sh *shard) enter(t *task) {
	t.inWindow = true
	t.kind.n++
	sh.inWindow++
	var ok bool
	if t.place, ok = sh.waiting.Add(int64(t.At), t); !ok {
		t.kind.due.push(t)
		sh.due++
	}
}

// leave takes a task out of the window, if it is there.
func (sh *shard) leave(t *task) {
	if !t.inWindow {
		return
	}
	if _, ok := sh.waiting.Remove(t.place); !ok {
		t.kind.due.remove(t)
		sh.due--
	}
	t.inWindow, t.place = false, timingwheel.ID{}
	t.kind.n--
	sh.inWindow--
}

// advance moves what is due from waiting to the queues of its kinds.
func (sh *shard) advance(now store.Time) {
	var out [64]timingwheel.Expired[*task]
	for more := true; more; {
		var n int
		n, more = sh.waiting.Advance(int64(now), out[:])
		for _, x := range out[:n] {
			x.Value.kind.due.push(x.Value)
			sh.due++
		}
	}
}

// head returns the task of the kind that has been due longest, or nil.
func (sh *shard) head(k *kind, now store.Time) *task {
	for k.due.len() == 0 && k.mark.at <= now {
		sh.fill(k, now)
	}
	if k.due.len() == 0 {
		return nil
	}
	return k.due.first()
}

// fill reads a page into the window of a kind, and raises its mark.
func (sh *shard) fill(k *kind, now store.Time) {
	lower := appendPending(nil, sh.index, k.id, k.mark.at, k.mark.id)
	prefix := lower[:kindedLen]
	it, err := sh.s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: after(prefix)})
	sh.must(err)
	far := now.Add(horizon)
	next := everything
	n := 0
	for it.First(); it.Valid(); it.Next() {
		at, id, err := parseTimed(it.Key(), kindedLen)
		sh.must(err)
		if n++; n > sh.s.config.batch || at > far {
			next = mark{at, string(id)}
			break
		}
		// What is in memory has its place, or the batch under way gives it one.
		if sh.tasks[string(id)] == nil {
			sh.page(k, at, string(id))
		}
	}
	sh.must(it.Error())
	stats := it.Stats()
	sh.steps += int64(stats.InternalStats.PointCount)
	sh.must(it.Close())
	k.mark = next
	// What the batch under way has put behind the old mark is not on the disk yet.
	for _, t := range sh.touched {
		if t.State == store.Pending && t.kind == k && !t.inWindow {
			sh.place(t, now)
		}
	}
}

// page takes a task in of which an index has told.
func (sh *shard) page(k *kind, at store.Time, id string) {
	t := &task{kind: k, saved: saved{store.Pending, at, k.id}}
	t.ID, t.Handler, t.Schedule = id, k.handler, k.schedule
	t.State, t.At = store.Pending, at
	sh.tasks[id] = t
	sh.enter(t)
}

// readAhead fills the windows that need it, one page each, and returns when it is to be
// called again. Each batch ends with it.
func (sh *shard) readAhead(now store.Time) (again store.Time) {
	again = never
	half := sh.size() / 2
	for _, k := range sh.kinds {
		if k.n < half && k.mark.at <= now.Add(ahead) {
			sh.fill(k, now)
		}
		if k.n < half && k.mark.at != never {
			again = min(again, k.mark.at.Add(-ahead))
		}
	}
	return again
}

// trim drops what is last from windows that have grown too large. No task is touched.
func (sh *shard) trim() {
	if sh.inWindow <= 2*max(sh.s.config.window, leastSize*len(sh.kinds)) {
		return
	}
	size := sh.size()
	large := make(map[*kind][]*task)
	for _, t := range sh.tasks {
		if t.inWindow && t.kind.n > size {
			large[t.kind] = append(large[t.kind], t)
		}
	}
	for k, list := range large {
		slices.SortFunc(list, func(a, b *task) int { return a.mark().compare(b.mark()) })
		for _, t := range list[size:] {
			sh.leave(t)
			delete(sh.tasks, t.ID)
		}
		if m := list[size].mark(); m.compare(k.mark) < 0 {
			k.mark = m
		}
	}
}

// lowest returns a mark that no Pending task of the kind is before.
func (sh *shard) lowest(k *kind) mark {
	low := k.mark
	if k.due.len() > 0 {
		low = lower(low, k.due.first().mark())
	}
	if next, ok := sh.waiting.Next(); ok {
		low = lower(low, mark{at: store.Time(next)})
	}
	return lower(low, mark{at: store.Farthest})
}

func lower(a, b mark) mark {
	if b.compare(a) < 0 {
		return b
	}
	return a
}
