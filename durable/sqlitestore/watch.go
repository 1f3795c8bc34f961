package sqlitestore

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/tickless/tickless/durable/store/batch"
)

// How often watchOtherCommits looks for commits of other processes.
const (
	pollEvery = 50 * time.Millisecond // the interval if the system does not report writes
	firstPoll = 2 * time.Millisecond  // the first interval after a write
	pollFor   = time.Minute           // how long to look after a write
)

// Wait first calls wake for each shard, so that no earlier change is missed.
func (s *Store) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	if err := s.checkOpen(ctx); err != nil || s.readOnly {
		return cmp.Or(err, ErrReadOnly)
	}
	if !s.oneProcess || s.elapsed != nil { // otherwise there is nothing to watch: no other process, and no system clock
		s.startWatchOnce.Do(func() { s.goroutines.Go(s.watchOtherCommits) })
	}
	return s.waiters.Wait(ctx, shards, wake)
}

// wakeIfChanged wakes the calls of Wait if the counter wakes has changed. Each change for
// which all workers must wake up increments the counter.
func (s *Store) wakeIfChanged(wakes int64) {
	if s.lastWakes.Swap(wakes) != wakes {
		s.waiters.Wake(0)
	}
}

// watchOtherCommits looks for commits of other connections. A commit becomes visible only
// after a sync of the disk. So watchOtherCommits looks several times after a write to the
// log, with growing pauses.
func (s *Store) watchOtherCommits() {
	logWrites := make(chan struct{}, 1)
	stop, err := watchLogAndClock(s.path, func() {
		select {
		case logWrites <- struct{}{}:
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
	otherWrites := logWrites // nil, and so never ready, if no other process writes
	if s.oneProcess {
		otherWrites = nil
	}
	conn, err := s.serviceDB.Conn(context.Background())
	if err != nil {
		s.log.Error("sqlitestore: workers find tasks of other processes late: cannot watch for commits", "error", err)
		return
	}
	defer conn.Close()
	x := newSession(conn)
	defer x.close()
	lastDataVersion := int64(-1)
	for {
		select {
		case <-s.closed:
			return
		case <-tick:
			lastDataVersion = s.wakeOnCommit(x, lastDataVersion)
		case <-otherWrites:
			writtenAt := time.Now()
			for next := writtenAt.Add(firstPoll); time.Since(writtenAt) < pollFor; {
				select {
				case <-s.closed:
					return
				case <-otherWrites: // another write
					writtenAt = time.Now()
					if soon := writtenAt.Add(firstPoll); soon.Before(next) {
						next = soon
					}
				case <-time.After(time.Until(next)):
					lastDataVersion = s.wakeOnCommit(x, lastDataVersion)
					next = time.Now().Add(max(firstPoll, time.Since(writtenAt)/2))
				}
			}
		}
	}
}

// wakeOnCommit wakes the calls of Wait if another connection has committed new work. It
// returns SQLite's data_version, which changes with such a commit. lastDataVersion is the
// result of the previous call.
func (s *Store) wakeOnCommit(x *session, lastDataVersion int64) (version int64) {
	var err error
	defer func() {
		if err != nil {
			version = -1 // perhaps the file is locked: check again
		}
	}()
	defer batch.Recover(&err)
	x.queryRow(getVersion, nil, &version)
	if version != lastDataVersion {
		var wakes int64
		x.queryRow(getWakes, nil, &wakes)
		s.wakeIfChanged(wakes)
	}
	return version
}
