package httptimeout

import (
	"context"
	"sync"
	"time"
)

// An upgradeCtx is the context of a request with an Upgrade header. It ends when the
// context that it follows ends. At first it follows a context with a timeout. After
// dropTimeout it follows one without. Its Done channel stays the same.
type upgradeCtx struct {
	done chan struct{}

	mu             sync.Mutex
	followed       context.Context // does not change after err is set
	cancelFollowed context.CancelFunc
	unfollow       func() bool // returns false if followed has ended, which ends this context
	err            error       // set when done is closed
}

var _ context.Context = (*upgradeCtx)(nil)

// newUpgradeCtx returns a context that follows timed. cancelTimed cancels timed.
func newUpgradeCtx(timed context.Context, cancelTimed context.CancelFunc) *upgradeCtx {
	c := &upgradeCtx{done: make(chan struct{})}
	c.mu.Lock()
	c.followLocked(timed, cancelTimed)
	c.mu.Unlock()
	return c
}

func (c *upgradeCtx) followLocked(ctx context.Context, cancel context.CancelFunc) {
	c.followed, c.cancelFollowed = ctx, cancel
	c.unfollow = context.AfterFunc(ctx, c.end)
}

// dropTimeout makes c follow parent instead of the context with the timeout. It does
// nothing if that context has already ended.
func (c *upgradeCtx) dropTimeout(parent context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.unfollow() {
		return
	}
	cancelTimed := c.cancelFollowed
	c.followLocked(context.WithCancel(parent))
	cancelTimed()
}

// cancel ends c and the context that it follows. This releases the timer.
func (c *upgradeCtx) cancel() {
	c.mu.Lock()
	cancelFollowed := c.cancelFollowed
	c.mu.Unlock()
	cancelFollowed()
	c.end()
}

// end ends c with the error of the context that it follows.
func (c *upgradeCtx) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = c.followed.Err()
		close(c.done)
	}
}

func (c *upgradeCtx) Done() <-chan struct{} { return c.done }

func (c *upgradeCtx) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *upgradeCtx) Deadline() (time.Time, bool) { return c.current().Deadline() }

// Value also serves [context.Cause], which looks up the cause by key.
func (c *upgradeCtx) Value(key any) any { return c.current().Value(key) }

func (c *upgradeCtx) current() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.followed
}
