package redisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Store reads the servers' settings again while it schedules tasks: every
// settingsInterval in the background, and after maxSettingsAge before it schedules.
const (
	settingsInterval = 4 * time.Second
	maxSettingsAge   = 8 * time.Second
)

// An evictionCheck remembers whether a server evicts keys.
type evictionCheck struct {
	reading chan struct{} // has an element while the settings are read
	mu      sync.Mutex    // guards readAt and err
	readAt  time.Time
	err     error // an ErrEviction, or nil
}

// refuseEviction returns an ErrEviction if a server may evict tasks, as the settings of the
// last seconds say. Otherwise Schedule would acknowledge tasks that vanish.
func (s *Store) refuseEviction(ctx context.Context) error {
	x := &s.eviction
	age, err := x.latest()
	if age < settingsInterval {
		return err
	}
	if age < maxSettingsAge {
		select {
		case x.reading <- struct{}{}:
			go s.readEviction(context.WithoutCancel(ctx))
		default:
		}
		return err
	}
	select {
	case x.reading <- struct{}{}:
		s.readEviction(ctx)
	case <-ctx.Done():
		return toStoreError(&unsentError{ctx.Err()})
	}
	_, err = x.latest()
	return err
}

func (x *evictionCheck) latest() (age time.Duration, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return time.Since(x.readAt), x.err
}

// readEviction reads the servers' settings, unless another call has just done so. If the
// servers do not answer, it changes nothing: the command that follows fails too.
func (s *Store) readEviction(ctx context.Context) {
	x := &s.eviction
	defer func() { <-x.reading }()
	if age, _ := x.latest(); age < settingsInterval {
		return
	}
	nodes, err := s.readSettings(ctx)
	if err != nil {
		return
	}
	_, evictionErr := s.healthFromSettings(nodes)
	if evictionErr != nil {
		evictionErr = fmt.Errorf("%w: %w", evictionErr, store.ErrNotDone)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.readAt, x.err = time.Now(), evictionErr
}
