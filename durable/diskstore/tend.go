package diskstore

import "time"

// tend is the goroutine for what is done beside the commands: the marker, and the search
// for files of the log that are gone. It sleeps while there is nothing to do.
func (s *Store) tend() {
	defer s.running.Done()
	for {
		select {
		case <-s.over: // before all else
			return
		default:
		}
		select {
		case <-s.over:
			return
		case err := <-s.gate.stuck: // since just before the store was open
			s.fail(err)
			return
		case <-s.flushed:
			if err := s.mark(); err != nil {
				s.config.log.Warn("diskstore: the marker was not written", "dir", s.dir, "error", firstLine(err.Error()))
			}
		case <-s.look:
			if err := s.findLog(); err != nil {
				s.fail(err)
				return
			}
		}
	}
}

// syncLater is the goroutine for the syncs of WithSync. It does nothing else, so that
// nothing else holds them up.
func (s *Store) syncLater() {
	defer s.running.Done()
	for s.awaitSync() {
		if err := s.sync(); err != nil {
			s.fail(err)
			return
		}
		soon(s.look)
	}
}

// awaitSync returns when a sync of WithSync is to begin, or false when the store is over.
func (s *Store) awaitSync() bool {
	var first time.Time
	select {
	case <-s.over:
		return false
	case first = <-s.unsynced:
	}
	select {
	case <-s.over:
		return false // Close syncs
	case <-time.After(s.config.every - time.Since(first)):
	}
	select {
	case <-s.unsynced: // what has come meanwhile is synced now, too
	default:
	}
	return true
}

// soon has tend do something.
func soon(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sync syncs what was written, for WithSync.
func (s *Store) sync() error {
	written := make([]int64, len(s.shards))
	for i, sh := range s.shards {
		written[i] = sh.written.Load()
	}
	b := s.db.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		return err
	}
	if err := s.apply(b); err != nil {
		return err
	}
	for i, sh := range s.shards {
		sh.synced.Store(written[i])
	}
	return nil
}

// mark writes how much is on the disk at least, and in which log the rest is. That fails
// without harm. The gate knows of it: a store that has failed gives its directory back when
// the marker is there, and writes none after that, which would be another store's.
func (s *Store) mark() error {
	if !s.gate.tryEnter() {
		return nil
	}
	defer s.gate.busy.Add(-1)
	m := marker{Format: formatVersion, Shards: len(s.shards), Ready: true, Log: s.newestLog.Load()}
	for _, sh := range s.shards {
		m.Written = append(m.Written, sh.synced.Load())
	}
	return m.write(s.config.fs, s.dir)
}
