package sqlitestore

import (
	"cmp"
	"context"
	"math"
	"time"
)

// Times of the watch for what other processes commit.
const (
	lookEvery  = 50 * time.Millisecond // where nothing tells that the file has changed
	quickEvery = 2 * time.Millisecond  // after something has
	quickFor   = 50 * time.Millisecond
)

// Wait calls wake first, so that nothing that came before is missed.
func (s *Store) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	if err := s.mayBegin(ctx); err != nil || s.readOnly {
		return cmp.Or(err, ErrReadOnly)
	}
	s.watch.Do(func() { s.all.Go(s.watchOthers) })
	return s.waiters.Wait(ctx, shards, wake)
}

// saw wakes all who wait if the number of wake-ups is not the one for which they were
// woken last.
func (s *Store) saw(wakes int64) {
	if s.seen.Swap(wakes) != wakes {
		s.waiters.Wake(0)
	}
}

// watchOthers looks for what others have committed. The log is written before what is in
// it can be seen: so it looks often for a while when something was written.
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
	if s.alone {
		changed = nil
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
		case <-changed:
			for begin := time.Now(); time.Since(begin) < quickFor; {
				select {
				case <-s.over:
					return
				case <-time.After(quickEvery):
				}
				last = s.look(x, last)
			}
		}
	}
}

// look wakes those who wait if another connection has committed something for them. last is
// the version that was seen last.
func (s *Store) look(x *session, last int64) (version int64) {
	var err error
	defer func() {
		if err != nil {
			version = -1 // busy, maybe: it looks again
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
