package timer

import "go.uber.org/atomic"

// A limit bounds how many timers of Start may be pending. Each of them has tagLimited.
type limit struct {
	most int64
	n    atomic.Int64
}

// take makes one more of them pending, or reports false.
func (l *limit) take() bool {
	if l.n.Inc() <= l.most {
		return true
	}
	l.n.Dec()
	return false
}

// give is called when n of them have left.
func (l *limit) give(n int) { l.n.Sub(int64(n)) }
