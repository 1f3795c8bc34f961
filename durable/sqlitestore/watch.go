package sqlitestore

import (
	"cmp"
	"context"
	"math"
	"time"
)

// The intervals of the watch for commits of other processes.
const (
	lookEvery  = 50 * time.Millisecond // if the system does not report changes of the file
	quickEvery = 2 * time.Millisecond  // at first after a reported change; the interval then grows
	lookFor    = time.Minute           // how long after the latest reported change
)

// Wait first calls wake for each shard, so that no earlier change is missed.
func (s *Store) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	if err := s.mayBegin(ctx); err != nil || s.readOnly {
		return cmp.Or(err, ErrReadOnly)
	}
	s.watch.Do(func() { s.all.Go(s.watchOthers) })
	return s.waiters.Wait(ctx, shards, wake)
}

// saw wakes the waiting calls if wakes has changed since they were last woken.
func (s *Store) saw(wakes int64) {
	if s.seen.Swap(wakes) != wakes {
		s.waiters.Wake(0)
	}
}

// watchOthers looks for commits of other connections. The system reports the write to
// the log, but the commit becomes visible only after the disk sync that follows. So
// watchOthers looks several times after a write. Each pause is half of the time since
// the write: a commit is seen late by at most half of the time that its sync takes.
func (s *Store) watchOthers() {
	changed := make(chan struct{}, 1)
	stop, err := notify(s.path, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}, func() { s.waiters.Wake(0) })
	var tick <-chan time.Time
	switch {
	case err == nil:
		defer stop()
		if s.tell != nil {
			s.longest.Store(math.MaxInt64)
		}
	case !s.alone:
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		tick = t.C
	}
	written := changed // nil, and so never ready, if no other process writes
	if s.alone {
		written = nil
	}
	conn, err := s.tend.Conn(context.Background())
	if err != nil {
		s.log.Error("sqlitestore: what other processes schedule is noticed late", "error", err)
		return
	}
	defer conn.Close()
	x := newSession(conn)
	defer x.close()
	last := int64(-1)
	for {
		select {
		case <-s.over:
			return
		case <-tick:
			last = s.look(x, last)
		case <-written:
			begin := time.Now()
			for next := begin.Add(quickEvery); time.Since(begin) < lookFor; {
				select {
				case <-s.over:
					return
				case <-written: // again
					begin = time.Now()
					if soon := begin.Add(quickEvery); soon.Before(next) {
						next = soon
					}
				case <-time.After(time.Until(next)):
					last = s.look(x, last)
					next = time.Now().Add(max(quickEvery, time.Since(begin)/2))
				}
			}
		}
	}
}

// look wakes the waiting calls if another connection has committed a change for them.
// last is the version at the previous look.
func (s *Store) look(x *session, last int64) (version int64) {
	var err error
	defer func() {
		if err != nil {
			version = -1 // perhaps busy: check again
		}
	}()
	defer recoverInto(&err)
	x.row(getVersion, nil, &version)
	if version != last {
		var wakes int64
		x.row(getWakes, nil, &wakes)
		s.saw(wakes)
	}
	return version
}
