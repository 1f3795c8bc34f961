package timer

import (
	"sync"
	"time"

	"github.com/tickless/tickless/internal/wheel"
)

// lateness is how late the poller has fired timers.
type lateness struct {
	mu    sync.Mutex
	fired *Histogram // nil: none has fired
}

// record records the lateness of timers that fire at a moment.
func (l *lateness) record(expired []wheel.Expired[payload], now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fired == nil {
		l.fired = new(Histogram)
	}
	for i := range expired {
		l.fired.Record(time.Duration(now - expired[i].Due))
	}
}

func (l *lateness) stats(st *Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fired != nil {
		st.Lateness.Merge(*l.fired)
	}
}
