package timer

import (
	"sync"
	"unsafe"

	"github.com/tickless/tickless/internal/wheel"
)

// A drainer is what the poller needs to work through expired timers.
type drainer struct {
	p *poller
	// expired has room for a batch, or is nil. It is kept only while work is done.
	expired *expiredBatch
	// batch are callbacks on their way to the executor.
	batch batch
	// idle: a shard may have lost its last timer.
	idle bool
}

// expiredBatch is room for the timers of a batch.
type expiredBatch [batchSize]wheel.Expired[payload]

var expiredBatches = sync.Pool{New: func() any { return new(expiredBatch) }}

// drain works through a batch of a shard's expired timers, after those of bucket b,
// if it is queued, have joined them. It reports whether there were any.
func (d *drainer) drain(sh *shard, b dueBucket, queued bool) (worked bool) {
	if d.expired == nil {
		d.expired = expiredBatches.Get().(*expiredBatch)
	}
	sh.mu.Lock()
	if queued {
		sh.wheel.Expire(b.b, b.expiration)
	}
	before := sh.wheel.Cascaded() + sh.n.cascaded
	n, _ := sh.wheel.Drain(d.expired[:])
	collected := len(d.batch.fs)
	worked = d.fireLocked(sh, d.expired[:n]) || sh.wheel.Cascaded()+sh.n.cascaded != before
	level, more := sh.wheel.Draining()
	d.idle = d.idle || sh.wheel.Len() == 0
	sh.wake = never // the poller is awake and will see for itself
	sh.mu.Unlock()
	switch {
	case more && level == 0:
		d.p.due.push(sh)
	case more:
		d.p.moves.push(sh)
	}
	touch(d.batch.fs[collected:])
	if len(d.batch.fs) >= shareSize || d.p.s.dispatch.onPoller {
		d.flush()
	}
	return worked
}

// fireLocked does for timers that left the wheel what is done under the shard's
// lock, and collects their callbacks in d.batch. It reports false if there are none.
func (d *drainer) fireLocked(sh *shard, expired []wheel.Expired[payload]) bool {
	if sh.entries.n > 0 {
		expired = sh.expireEntriesLocked(expired)
	}
	if len(expired) == 0 {
		return false
	}
	at := d.p.s.moment()
	sh.n.fired += uint64(len(expired))
	d.p.late.record(expired, at.now)
	for i := range expired {
		e := &expired[i]
		if f, ok := sh.expireLocked(e.Value, e.Tag, at); ok {
			d.batch.fs = append(d.batch.fs, f)
		}
	}
	clear(expired)
	return true
}

// flush hands the batch over, or runs it.
func (d *drainer) flush() {
	if len(d.batch.fs) == 0 {
		return
	}
	if h := &d.p.s.dispatch; h.onPoller {
		d.batch.each(h.submit)
	} else {
		h.batch(&d.batch)
	}
}

// letGo gives back what it needs only while it works.
func (d *drainer) letGo() {
	if d.expired != nil {
		expiredBatches.Put(d.expired)
		d.expired = nil
	}
}

// touch brings callbacks, which are cold as a rule, near to the processor: many at a
// time, where to call one after the other would wait for each. What it returns is of no
// meaning, but keeps the compiler from leaving the loads out.
//
//go:noinline
func touch(fs []func()) (sum uintptr) {
	for _, f := range fs {
		if f != nil {
			sum += **(**uintptr)(unsafe.Pointer(&f))
		}
	}
	return sum
}
