package callback

import (
	"context"
	"sync"
)

// hosts limits how many requests there are to a host at a time. A host is known
// as long as somebody holds or awaits a place.
type hosts struct {
	limit int

	mu sync.Mutex
	m  map[string]*host
}

type host struct {
	places chan struct{}
	users  int // guarded by hosts.mu
}

// enter waits for a place until the context is done.
func (s *hosts) enter(ctx context.Context, name string) (leave func(), err error) {
	s.mu.Lock()
	h := s.m[name]
	if h == nil {
		h = &host{places: make(chan struct{}, s.limit)}
		s.m[name] = h
	}
	h.users++
	s.mu.Unlock()

	select {
	case h.places <- struct{}{}:
		return func() {
			<-h.places
			s.forget(name, h)
		}, nil
	case <-ctx.Done():
		s.forget(name, h)
		return nil, ctx.Err()
	}
}

func (s *hosts) forget(name string, h *host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(s.m, name)
	}
}
