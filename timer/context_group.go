package timer

import (
	"context"
	"maps"
	"sync"
	"unsafe"
	"weak"
)

// ctxParents has one registration with each parent that is not ours, known by its
// Done channel, for all contexts of ours that wait under it.
type ctxParents struct {
	stripes [16]ctxStripe
}

type ctxStripe struct {
	mu sync.Mutex
	// slots are by ctxKey. They do not keep the channel alive.
	slots map[uintptr]*ctxSlot
	// sweepAt is how many slots there may be before those of the dead are dropped, and
	// about the most that the map has had.
	sweepAt int
	// last is the key of the group that was taken back last.
	last  uintptr
	spare *ctxGroup
	_     [24]byte // a cache line each
}

// ctxSlot leads to a group. While nobody is in the group, what is registered with
// the parent keeps it alive, and nothing here.
type ctxSlot struct {
	group *ctxGroup
	idle  weak.Pointer[ctxGroup]
}

// ctxGroup is those contexts that wait for the same channel, and see in the same place how
// it came to be closed.
//
// Most parents have one child, or many at a time: so the registration is taken back
// when the last one has left, which is of no use where children come one after the
// other. From the second time on it stays for as long as the parent does.
type ctxGroup struct {
	// Fixed, also when the group is used again for another parent.

	in   *ctxStripe
	slot *ctxSlot
	end  func() // tellAll
	back func() // takeBack

	// Fixed while contexts are in the group.

	done <-chan struct{}
	std  context.Context // package context's whose channel it is, if it is one's

	// All below is guarded by in.mu.

	hooks *ctxHook
	over  bool        // nobody can join any more
	stop  func() bool // takes the registration back
	stays bool
	// kept: a context may look at std even after it has left.
	kept bool
}

// ctxKey returns what a group is known by: the address of the channel, which is even,
// made odd if none of package context's is known whose channel it is. Contexts of the two
// kinds are in two groups: they see the end in other places.
func ctxKey(done <-chan struct{}, std context.Context) uintptr {
	key := chanAddress(done)
	if std == nil {
		key |= 1
	}
	return key
}

// stripe returns the one of a group, by its key.
func (ps *ctxParents) stripe(key uintptr) *ctxStripe {
	return &ps.stripes[(key>>7^key>>13)%uintptr(len(ps.stripes))]
}

// join adds a hook to the group of a channel. If it reports true the caller is to
// register the group, with no lock held.
func (ps *ctxParents) join(done <-chan struct{}, std context.Context, h *ctxHook) (g *ctxGroup, register bool) {
	key := ctxKey(done, std)
	in := ps.stripe(key)
	in.mu.Lock()
	defer in.mu.Unlock()
	slot := in.slots[key]
	if slot != nil {
		if g = slot.group; g == nil {
			// It holds the channel: so if it is there, the address is not another's.
			g = slot.idle.Value()
			slot.group = g
		}
	}
	if g == nil {
		g, register = in.newGroupLocked(key), true
		g.done, g.std = done, std
	}
	if std != nil && h.child.kind() == ctxUnderOther {
		g.kept = true
	}
	g.hooks = g.hooks.push(h)
	return g, register
}

func (in *ctxStripe) newGroupLocked(key uintptr) *ctxGroup {
	g := in.spare
	in.spare = nil
	if g == nil {
		g = &ctxGroup{in: in, slot: new(ctxSlot)}
		g.end, g.back = g.tellAll, g.takeBack
	}
	g.stays = key == in.last
	g.slot.group = g
	if in.slots == nil {
		in.slots = map[uintptr]*ctxSlot{}
	}
	in.slots[key] = g.slot
	if len(in.slots) > in.sweepAt {
		in.sweepAt = max(in.sweepAt, len(in.slots))
		in.sweepLocked()
		in.sweepAt = max(in.sweepAt, 2*len(in.slots)+16)
	}
	return g
}

// sweepLocked drops the slots of the dead.
func (in *ctxStripe) sweepLocked() {
	for key, slot := range in.slots {
		if slot.group == nil && slot.idle.Value() == nil {
			delete(in.slots, key) // its parent is gone and was never done
		}
	}
	in.shrinkLocked()
}

// shrinkLocked gives memory back if few slots are left: maps do not shrink. That the map
// is small is no reason, since then it would be made again for each parent.
func (in *ctxStripe) shrinkLocked() {
	const small = 64
	if in.sweepAt <= small || len(in.slots) >= in.sweepAt/8 {
		return
	}
	slots := make(map[uintptr]*ctxSlot, len(in.slots))
	maps.Copy(slots, in.slots)
	in.slots, in.sweepAt = slots, 2*len(slots)+16
}

// sweep drops the slots of the dead in all stripes.
func (ps *ctxParents) sweep() {
	for i := range ps.stripes {
		in := &ps.stripes[i]
		in.mu.Lock()
		in.sweepLocked()
		in.mu.Unlock()
	}
}

// register has the group told when parent is done, on a goroutine of its own.
func (g *ctxGroup) register(parent context.Context) {
	stop := context.AfterFunc(parent, g.end)
	g.in.mu.Lock()
	over := g.over
	g.stop = stop
	g.in.mu.Unlock()
	if over {
		stop() // all have left meanwhile
	}
}

// remove takes a hook out, unless the group is over. If it was the last, and the
// registration is to be taken back, it returns what does so.
func (g *ctxGroup) remove(h *ctxHook) (takeBack func()) {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	if g.over {
		return nil
	}
	if g.hooks = g.hooks.without(h); g.hooks != nil {
		return nil
	}
	if g.stays && g.std != nil {
		if g.slot.idle == (weak.Pointer[ctxGroup]{}) {
			g.slot.idle = weak.Make(g)
		}
		g.slot.group = nil
		return nil
	}
	g.overLocked()
	if g.stop == nil {
		return nil // who registers the group sees that it is over
	}
	return g.back
}

func (g *ctxGroup) overLocked() {
	g.over = true
	g.slot.group = nil
	key := ctxKey(g.done, g.std)
	delete(g.in.slots, key)
	g.in.shrinkLocked()
	g.in.last = key
}

// takeBack takes the registration of a group back that is over, and keeps the group
// for another parent.
func (g *ctxGroup) takeBack() {
	if !g.stop() {
		return // the parent is done: tellAll runs, or will
	}
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	if g.kept || g.in.spare != nil {
		return
	}
	g.done, g.std, g.stop, g.over = nil, nil, nil, false
	g.in.spare = g
}

// tellAll ends all in the group, because their parents are done. Nothing waits for
// it to return: it may call the parents' methods.
func (g *ctxGroup) tellAll() {
	g.in.mu.Lock()
	hooks := g.hooks
	g.hooks = nil
	if !g.over {
		g.overLocked()
	}
	g.in.mu.Unlock()
	last := g.std
	var end ctxEnd
	if last != nil && hooks != nil {
		end = endOf(last, hooks.child.s)
	}
	for h := hooks; h != nil; {
		next := h.cut()
		if p := h.child.parent; g.std == nil && (last == nil || !same(p, last)) {
			last, end = p, endOf(p, h.child.s)
		}
		h.child.end(h.child.judge(end))
		h = next
	}
}

// endOf returns how a context has ended that is not ours. One whose Done is closed
// and that has no error counts as cancelled.
func endOf(ctx context.Context, by *Scheduler) ctxEnd {
	err := ctx.Err()
	if err == nil {
		err = context.Canceled
	}
	return ctxEnd{err, context.Cause(ctx), by.now(), by}
}

// same reports whether two contexts are the same value, of whatever type, without
// comparing what they hold, which not all types allow.
func same(a, b context.Context) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}

// chanAddress returns a number that no other channel has while this one is there.
func chanAddress(c <-chan struct{}) uintptr { return *(*uintptr)(unsafe.Pointer(&c)) }
