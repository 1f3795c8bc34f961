package diskstore

import (
	"fmt"
	"time"
)

const (
	// closeTimeout is how long Close waits for what a store that has failed is writing,
	// but in tests.
	closeTimeout = 5 * time.Second
	// fullCheck is how often Close looks whether the disk is full while it waits.
	fullCheck = 20 * time.Millisecond
)

// Close ends the Store: calls that have begun are finished, every later one returns
// [store.ErrClosed], and Wait returns. It waits until all is written. Nothing is left
// running.
//
// If the disk has failed Close returns that error, and the directory can be opened again
// nevertheless, but goroutines and memory of the database are left behind until the
// process ends. Close may be called more than once.
func (s *Store) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.end()
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		s.reading.Lock() // whoever is to read has begun
		defer s.reading.Unlock()
		s.readers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-s.failed:
		return s.release()
	}
	s.finding.Lock()
	s.lookNoMoreLocked()
	s.finding.Unlock()
	s.flush()
	err := s.closeDB()
	select {
	case <-s.failed:
		return s.release()
	default:
	}
	if err == nil {
		err = s.mark()
	}
	s.gate.shut.Store(true)
	_ = s.lock.Close() // it is gone with the process at the latest
	if err != nil {
		return fmt.Errorf("diskstore: Close: %w", err)
	}
	return nil
}

// release gives the directory of a store that has failed back, if nothing is changed
// there any more. The database cannot be closed.
func (s *Store) release() error {
	if !s.gate.quiet(s.config.patience) {
		return fmt.Errorf("the disk does not answer, and the directory stays locked: %w", s.cause)
	}
	s.gate.drop()
	_ = s.lock.Close() // it is gone with the process at the latest
	return s.cause
}

// flush has what is in the log alone written to the tables too, whose damage is noticed
// when they are read. It goes without if the disk is full, or too many files are open.
func (s *Store) flush() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		if err := s.writeHeads(); err != nil {
			return
		}
		flushed, err := s.db.AsyncFlush()
		if err != nil {
			return
		}
		for {
			select {
			case <-flushed:
				return
			case <-s.failed:
				return
			case <-time.After(fullCheck):
				if s.room.none.Load() || s.gate.short.Load() {
					return
				}
			}
		}
	}()
	select {
	case <-done:
	case <-s.failed:
	}
}

// closeDB closes the database, or gives up if the disk has failed.
func (s *Store) closeDB() error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- panicked(v)
			}
		}()
		done <- s.db.Close()
	}()
	select {
	case err := <-done:
		return err
	case err := <-s.gate.stuck:
		return err
	case <-s.failed:
		return s.cause
	}
}

// abandon closes what Open cannot use.
func (s *Store) abandon() { _ = s.closeDB() }
