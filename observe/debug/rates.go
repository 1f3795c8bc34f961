package debug

import (
	"sync"
	"time"
	"weak"

	"github.com/tickless/tickless/timer"
)

// Rates are counted between two requests, at least rateApart and at most rateStale
// apart, whoever has made them; else since the Scheduler was first asked for.
const (
	rateApart = 500 * time.Millisecond
	rateStale = time.Minute
)

// rates remembers what Schedulers had counted.
type rates struct {
	mu   sync.Mutex
	seen map[weak.Pointer[timer.Scheduler]]*counted
}

// counted are the last two readings that are far enough apart.
type counted struct{ before, last reading }

type reading struct {
	at                      time.Time
	started, stopped, fired uint64
}

// of reads a Scheduler's counts.
func (r *rates) of(s *timer.Scheduler) measured {
	st := s.Stats()
	now := reading{time.Now(), st.Started, st.Stopped, st.Fired}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = make(map[weak.Pointer[timer.Scheduler]]*counted)
	}
	for p := range r.seen {
		if p.Value() == nil {
			delete(r.seen, p)
		}
	}
	c := r.seen[weak.Make(s)]
	if c == nil {
		c = &counted{now, now}
		r.seen[weak.Make(s)] = c
	}
	if now.at.Sub(c.last.at) >= rateApart {
		c.before, c.last = c.last, now
		if now.at.Sub(c.before.at) > rateStale {
			c.before = now
		}
	}
	m := measured{stats: st}
	if d := now.at.Sub(c.before.at).Seconds(); d >= rateApart.Seconds() {
		m.rates = &ratesView{
			Started: float64(now.started-c.before.started) / d,
			Stopped: float64(now.stopped-c.before.stopped) / d,
			Fired:   float64(now.fired-c.before.fired) / d,
			Seconds: d,
		}
	}
	return m
}

// measured is what a Scheduler has counted, and how fast, if that is known.
type measured struct {
	stats timer.Stats
	rates *ratesView
}
