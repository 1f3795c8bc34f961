package hashedwheel

import "time"

// run gives the slots their turns, one a tick. When it comes late it gives all
// the turns that it has missed.
func (w *Wheel) run() {
	defer close(w.ended)
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	var due []func()
	for {
		select {
		case <-w.quit:
			return
		case <-ticker.C:
		}
		for now := int64(time.Since(w.base) / w.interval); ; {
			var more bool
			due, more = w.turn(due, now)
			for i, f := range due {
				f()
				due[i] = nil
			}
			due = due[:0]
			if !more {
				break
			}
		}
	}
}

// turn gives the next slot its turn, unless that is after the tick now, and
// appends to due what is to be called. It reports whether another turn may be
// due.
func (w *Wheel) turn(due []func(), now int64) ([]func(), bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.stopped || w.mu.tick >= now {
		return due, false
	}
	w.mu.tick++
	s := &w.mu.slots[w.mu.tick&w.mask]
	for e := s.next; e != s; {
		next := e.next
		if e.tick <= w.mu.tick { // else it has rounds to wait
			due = append(due, e.f)
			unlink(e)
			w.releaseLocked(e)
		}
		e = next
	}
	return due, true
}
