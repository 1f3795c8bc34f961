package timer

import (
	"context"
	"reflect"
	"time"
	"unsafe"

	"go.uber.org/atomic"
)

// ctxKind says what a context's parent is, and so how its end is to be seen.
type ctxKind uint8

const (
	ctxAlone      ctxKind = iota // it is never done
	ctxUnderOurs                 // one of ours, perhaps in values
	ctxUnderStd                  // one of package context's, perhaps in values
	ctxUnderOther                // any other
)

// ctxKinds are the types of package context's contexts. They are known by an
// example of each. One that is not recognized counts as any other.
type ctxKinds struct {
	cancel, timer, background, todo, without ctxType
	// value is zero unless the first field of a context with a value is the context
	// that it is around.
	value ctxType
	// causeKey is the key by which package context asks for the nearest of its own.
	causeKey any
	// cancelFunc is the code of the functions by which one of package context's
	// is told, through AfterFunc, that it is done.
	cancelFunc uintptr
}

// ctxType is the type of what is in an interface: the word by which its methods are
// found, which takes less to compare than a reflect.Type.
type ctxType uintptr

func typeOf(ctx context.Context) ctxType {
	return ctxType((*[2]uintptr)(unsafe.Pointer(&ctx))[0])
}

var knownKinds atomic.Pointer[ctxKinds]

// stdKinds returns the kinds, which are learnt when they are first needed.
func stdKinds() *ctxKinds {
	if k := knownKinds.Load(); k != nil {
		return k
	}
	k := learnKinds()
	knownKinds.Store(k)
	return k
}

func learnKinds() *ctxKinds {
	bg := context.Background()
	cancelled, cancel := context.WithCancel(bg)
	cancel()
	expired, cancel := context.WithDeadline(bg, time.Time{})
	cancel()
	k := &ctxKinds{
		cancel:     typeOf(cancelled),
		timer:      typeOf(expired),
		background: typeOf(bg),
		todo:       typeOf(context.TODO()),
		without:    typeOf(context.WithoutCancel(bg)),
	}
	valueCtx := context.WithValue(bg, contextKey{}, nil)
	value := reflect.TypeOf(valueCtx)
	if value.Kind() == reflect.Pointer && value.Elem().Kind() == reflect.Struct {
		f := value.Elem().Field(0)
		if f.IsExported() && f.Type == reflect.TypeFor[context.Context]() {
			k.value = typeOf(valueCtx)
		}
	}
	p := &ctxProbe{Context: bg, done: make(chan struct{}), err: context.Canceled, kinds: k}
	context.Cause(p)
	p.err = nil
	_, cancel = context.WithCancel(p)
	cancel()
	return k
}

// ctxProbe is a parent that sees how package context treats parents.
type ctxProbe struct {
	context.Context
	done  chan struct{}
	err   error
	kinds *ctxKinds
}

func (p *ctxProbe) Done() <-chan struct{} { return p.done }
func (p *ctxProbe) Err() error            { return p.err }

func (p *ctxProbe) Value(key any) any {
	p.kinds.causeKey = key
	return nil
}

func (p *ctxProbe) AfterFunc(f func()) func() bool {
	p.kinds.cancelFunc = reflect.ValueOf(f).Pointer()
	return func() bool { return true }
}

// isStd reports whether ctx is one of package context's that can be cancelled: its
// methods wait for nothing.
func (k *ctxKinds) isStd(ctx context.Context) bool {
	t := typeOf(ctx)
	return t == k.cancel || t == k.timer
}

// nearest returns the context whose end is parent's, as far as that can be told
// without calling any method of one that is neither ours nor package context's,
// and what it is.
func (k *ctxKinds) nearest(parent context.Context) (context.Context, ctxKind) {
	for {
		if _, ok := parent.(*deadlineCtx); ok {
			return parent, ctxUnderOurs
		}
		switch typeOf(parent) {
		case k.cancel, k.timer:
			return parent, ctxUnderStd
		case k.background, k.todo, k.without:
			return nil, ctxAlone
		case k.value:
			parent = reflect.ValueOf(parent).Elem().Field(0).Interface().(context.Context)
		default:
			return parent, ctxUnderOther
		}
	}
}

// watchOther has a context that was just made wait for a parent that is neither
// ours nor package context's, unless that is never done.
func (c *deadlineCtx) watchOther(now int64) {
	done := c.parent.Done()
	switch {
	case done == nil:
		c.state.Store(uint32(ctxAlone) << ctxKindShift)
	case isClosed(done):
		c.end(endOf(c.parent, c.s))
	case c.due > now:
		// It may be around one of the other kinds, and leave its Done as it is.
		k := stdKinds()
		if p, ok := c.parent.Value(contextKey{}).(*deadlineCtx); ok && p.gave(done) {
			c.armUnder(now, p, ctxUnderOurs)
		} else if p, ok := c.parent.Value(k.causeKey).(context.Context); ok && k.isStd(p) && p.Done() == done {
			c.armUnder(now, p, ctxUnderStd)
		} else {
			c.armUnder(now, c.parent, ctxUnderOther)
		}
	}
	if c.due <= now {
		c.end(c.timeout())
	}
}

// gave reports whether a channel is what Done has returned.
func (c *deadlineCtx) gave(done <-chan struct{}) bool {
	m := c.more.Load()
	return m != nil && m.doneChan() == done
}

// parentEnd returns how the parent ended, if it did.
func (c *deadlineCtx) parentEnd(now int64) (end ctxEnd, ok bool) {
	switch c.kind() {
	case ctxUnderOurs:
		nearest, _ := stdKinds().nearest(c.parent)
		return nearest.(*deadlineCtx).seen(now, c.s)
	case ctxUnderStd:
		if err := c.parent.Err(); err != nil {
			if c.phase() == ctxIdle && err != context.DeadlineExceeded {
				now = 0 // it is not known when: before everything else, by the rule
			}
			return ctxEnd{err, context.Cause(c.parent), now, c.s}, true
		}
	case ctxUnderOther:
		switch m := c.armed(); {
		case m == nil:
		case m.nearest != nil:
			return m.nearest.seen(now, c.s)
		case m.above != nil:
			if err := m.group.std.Err(); err != nil {
				return ctxEnd{err, context.Cause(m.group.std), now, c.s}, true
			}
		}
	}
	return end, false
}

// seen returns how the context ended, if it did by now, which is a moment of by's
// clock.
func (c *deadlineCtx) seen(now int64, by *Scheduler) (end ctxEnd, ok bool) {
	if c.s != by {
		now = c.s.now()
	}
	switch c.phase() {
	case ctxIdle:
		c.check(now)
	case ctxWaiting:
		c.Err()
	}
	if end.err = c.settledErr(); end.err == nil {
		return end, false
	}
	// One that nobody waited for and that had no child does not say when it ended.
	return ctxEnd{end.err, c.causeOf(end.err), min(c.ended.Load(), c.due, now), c.s}, true
}
