package timer

import "time"

// A Start is a timer for [Scheduler.StartBatch] to start.
type Start struct {
	Delay time.Duration
	Func  func()
}

// StartBatch starts many timers for less than Start takes for each: up to 256 at a time
// under one lock. It appends their Handles to hs, in order, and returns that. The error
// is that of the first timer which is not started, [ErrClosed] or [ErrTooManyPending];
// those before it are started, and those behind it are not. StartBatch panics if a Func
// is nil, and then starts none.
func (s *Scheduler) StartBatch(hs []Handle, starts []Start) ([]Handle, error) {
	for i := range starts {
		if starts[i].Func == nil {
			panic("timer: StartBatch with a nil func")
		}
	}
	for len(starts) > 0 {
		n := min(len(starts), batchSize)
		var err error
		if hs, err = s.startSome(hs, starts[:n], len(starts)-n); err != nil {
			return hs, err
		}
		starts = starts[n:]
	}
	return hs, nil
}

// startSome starts timers on one shard. behind is how many are to come after them.
func (s *Scheduler) startSome(hs []Handle, starts []Start, behind int) ([]Handle, error) {
	now := s.now()
	sh := s.lockShard()
	for i := 0; i < len(starts); {
		d := starts[i].Delay
		id, err := sh.startLocked(now, d, funcPayload(starts[i].Func), tagFunc)
		switch err {
		case nil:
			hs = append(hs, sh.handleLocked(id))
			i++
		case errGather:
			sh.unlock()
			s.gather()
			sh.mu.Lock()
		default:
			// The first is counted.
			more := uint64(len(starts) - i - 1 + behind)
			sh.n.rejected += more
			if err == ErrTooManyPending {
				sh.n.rejectedFull += more
			}
			sh.unlock()
			return hs, err
		}
	}
	sh.unlock()
	return hs, nil
}

// StopBatch stops the timers of many Handles, and returns how many of them it has kept
// from firing: those for which [Handle.Stop] would have reported true. Neighbours in hs
// that StartBatch has started together are stopped up to 256 at a time under one lock.
func StopBatch(hs []Handle) int {
	stopped := 0
	eachOfShard(hs, func(sh *shard, h Handle) {
		if sh.stopLocked(h.id()) {
			stopped++
		}
	})
	return stopped
}

// eachOfShard calls f with each Handle that is not zero, with its shard's lock held, and
// takes that once for up to batchSize neighbours of one shard.
func eachOfShard(hs []Handle, f func(sh *shard, h Handle)) {
	for len(hs) > 0 {
		if hs[0].home == nil {
			hs = hs[1:]
			continue
		}
		sh := hs[0].home.sh
		sh.mu.Lock()
		n := 0
		for ; n < min(len(hs), batchSize) && hs[n].home != nil && hs[n].home.sh == sh; n++ {
			f(sh, hs[n])
		}
		sh.unlock()
		hs = hs[n:]
	}
}
