package redisstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// maxSettingsAge is how long a Store relies on the servers' settings that it has read.
const maxSettingsAge = 4 * time.Second

// An evictionCheck remembers whether a server evicts keys.
type evictionCheck struct {
	reading chan struct{} // has an element while the settings are read
	latest  atomic.Pointer[evictionResult]
}

type evictionResult struct {
	readAt time.Time
	err    error // an ErrEviction, or nil
}

// refuseEviction returns an ErrEviction if a server may evict tasks, as the settings of the
// last seconds say. Otherwise Schedule would acknowledge tasks that vanish.
func (s *Store) refuseEviction(ctx context.Context) error {
	x := &s.eviction
	if r := x.latest.Load(); r != nil && time.Since(r.readAt) < maxSettingsAge {
		return r.err
	}
	select {
	case x.reading <- struct{}{}:
		defer func() { <-x.reading }()
	case <-ctx.Done():
		return toStoreError(&unsentError{ctx.Err()})
	}
	if r := x.latest.Load(); r != nil && time.Since(r.readAt) < maxSettingsAge {
		return r.err // another call has read the settings
	}
	nodes, err := s.readSettings(ctx)
	if err != nil {
		return nil // the command that follows fails too
	}
	r := &evictionResult{readAt: time.Now()}
	if _, r.err = s.healthFromSettings(nodes); r.err != nil {
		r.err = fmt.Errorf("%w: %w", r.err, store.ErrNotDone)
	}
	x.latest.Store(r)
	return r.err
}
