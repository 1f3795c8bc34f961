package timer

import "reflect"

// ctxHook is who is to be told that a context is done, in a list: one of ours
// that is under it, or a function.
type ctxHook struct {
	child      *deadlineCtx
	f          func()
	prev, next *ctxHook
}

// push returns the list with a hook added to it.
func (list *ctxHook) push(h *ctxHook) *ctxHook {
	if h.next = list; list != nil {
		list.prev = h
	}
	return h
}

// without returns the list with a hook taken out of it.
func (list *ctxHook) without(h *ctxHook) *ctxHook {
	if h.next != nil {
		h.next.prev = h.prev
	}
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		list = h.next
	}
	h.prev, h.next = nil, nil
	return list
}

// cut takes the first hook off a list, which is over, and returns the rest: so
// whoever keeps one hook does not keep the others.
func (list *ctxHook) cut() (rest *ctxHook) {
	rest, list.prev, list.next = list.next, nil, nil
	return rest
}

// join returns a list that goes on with another.
func (list *ctxHook) join(more *ctxHook) *ctxHook {
	if list == nil {
		return more
	}
	last := list
	for last.next != nil {
		last = last.next
	}
	last.next = more
	return list
}

// addHook has h told when the context is done. It reports false if it is already.
// The context waits, or is done.
func (c *deadlineCtx) addHook(h *ctxHook) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase() != ctxWaiting {
		return false
	}
	m := c.more.Load()
	m.hooks = m.hooks.push(h)
	return true
}

// removeHook takes h back. It reports false if it has been told, or will be.
func (c *deadlineCtx) removeHook(h *ctxHook) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase() != ctxWaiting {
		return false
	}
	m := c.more.Load()
	m.hooks = m.hooks.without(h)
	return true
}

// AfterFunc calls f on a goroutine of its own once the context is done, as
// [context.AfterFunc] does, by which package context reaches it: for the contexts
// that are derived from this one. Those are told by whoever ends it.
func (c *deadlineCtx) AfterFunc(f func()) (stop func() bool) {
	h := &ctxHook{f: f}
	if reflect.ValueOf(f).Pointer() != stdKinds().cancelFunc {
		h.f = func() { go f() }
	}
	c.arm()
	if !c.addHook(h) {
		go f()
		return func() bool { return false }
	}
	stopped := false // guarded by c.mu
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if stopped || c.phase() != ctxWaiting {
			return false
		}
		stopped = true
		m := c.more.Load()
		m.hooks = m.hooks.without(h)
		return true
	}
}

// tell tells the hooks of a context how it has ended.
func tell(hooks *ctxHook, end ctxEnd) {
	for h := hooks; h != nil; {
		next := h.cut()
		if h.child != nil {
			h.child.end(h.child.judge(end))
		} else {
			h.f()
		}
		h = next
	}
}

// tellAtMost is how many contexts below it an expiring one ends on the poller.
const tellAtMost = 64

// expireOnPoller ends the context because its timer has fired. What may take long
// or is not ours alone it leaves to a goroutine: lists of any length, and contexts
// of package context's, whose end takes their locks.
func (c *deadlineCtx) expireOnPoller() {
	s := c.s
	if s.dispatch.onPoller {
		c.end(c.timeout()) // whoever advances the clock waits for all that follows
		return
	}
	later := ctxLater{budget: tellAtMost}
	later.end(c, c.timeout())
	if len(later.hooks) == 0 {
		return
	}
	s.telling.Add(1)
	go func() {
		defer s.telling.Add(-1)
		for _, l := range later.hooks {
			tell(l.hooks, l.end)
		}
	}()
}

// ctxLater collects what the poller does not tell itself.
type ctxLater struct {
	budget int
	hooks  []struct {
		hooks *ctxHook
		end   ctxEnd
	}
}

// end ends a context, and those of ours below it while the budget lasts.
func (l *ctxLater) end(c *deadlineCtx, end ctxEnd) {
	hooks, ok := c.finish(end, true)
	if !ok {
		return
	}
	var rest *ctxHook
	for h := hooks; h != nil; {
		if l.budget == 0 {
			rest = rest.join(h)
			break
		}
		next := h.cut()
		if h.child != nil {
			l.budget--
			l.end(h.child, h.child.judge(end))
		} else {
			rest = rest.push(h)
		}
		h = next
	}
	if rest != nil {
		l.hooks = append(l.hooks, struct {
			hooks *ctxHook
			end   ctxEnd
		}{rest, end})
	}
}
