package sqlitestore

import (
	"cmp"
	"context"
	"math"
	"time"
)

// How often watchOthers looks for commits of other processes.
const (
	pollEvery = 50 * time.Millisecond // if the system does not report writes
	firstPoll = 2 * time.Millisecond  // soon after a write; the interval then grows
	pollFor   = time.Minute           // after the latest write
)

// Wait first calls wake for each shard, so that no earlier change is missed.
func (s *Store) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	if err := s.checkOpen(ctx); err != nil || s.readOnly {
		return cmp.Or(err, ErrReadOnly)
	}
	s.watchOnce.Do(func() { s.goroutines.Go(s.watchOthers) })
	return s.waiters.Wait(ctx, shards, wake)
}

// wakeIfNew wakes the calls of Wait, unless they were already woken for this number. It
// counts the changes for which all workers must wake up.
func (s *Store) wakeIfNew(wakes int64) {
	if s.seenWakes.Swap(wakes) != wakes {
		s.waiters.Wake(0)
	}
}

// watchOthers looks for commits of other connections. A commit first writes to the log,
// and becomes visible after a sync of the disk. So watchOthers looks several times after
// a write. Each pause is half of the time since the write, so a commit is seen late by at
// most half of the time of its sync.
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
		if s.elapsed != nil {
			s.sleepLimit.Store(math.MaxInt64)
		}
	case !s.oneProcess:
		t := time.NewTicker(pollEvery)
		defer t.Stop()
		tick = t.C
	}
	written := changed // nil, and so never ready, if no other process writes
	if s.oneProcess {
		written = nil
	}
	conn, err := s.serviceDB.Conn(context.Background())
	if err != nil {
		s.log.Error("sqlitestore: workers find tasks of other processes late: cannot watch for commits", "error", err)
		return
	}
	defer conn.Close()
	x := newSession(conn)
	defer x.close()
	last := int64(-1)
	for {
		select {
		case <-s.closed:
			return
		case <-tick:
			last = s.look(x, last)
		case <-written:
			writtenAt := time.Now()
			for next := writtenAt.Add(firstPoll); time.Since(writtenAt) < pollFor; {
				select {
				case <-s.closed:
					return
				case <-written: // again
					writtenAt = time.Now()
					if soon := writtenAt.Add(firstPoll); soon.Before(next) {
						next = soon
					}
				case <-time.After(time.Until(next)):
					last = s.look(x, last)
					next = time.Now().Add(max(firstPoll, time.Since(writtenAt)/2))
				}
			}
		}
	}
}

// look wakes the calls of Wait if another connection has committed a change for them.
// version is SQLite's counter of such commits, and last is its value at the previous
// look.
func (s *Store) look(x *session, last int64) (version int64) {
	var err error
	defer func() {
		if err != nil {
			version = -1 // perhaps busy: check again
		}
	}()
	defer recoverInto(&err)
	x.queryRow(getVersion, nil, &version)
	if version != last {
		var wakes int64
		x.queryRow(getWakes, nil, &wakes)
		s.wakeIfNew(wakes)
	}
	return version
}
