package redistimer

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A reading is what a server's clock showed, and a moment after it.
type reading struct {
	micros int64
	after  time.Time
}

// at returns what the server's clock will show at a time, or a little less.
func (r *reading) at(t time.Time) int64 { return r.micros + t.Sub(r.after).Microseconds() }

// fresh is how old a reading may be that a deadline is computed by.
const fresh = 5 * time.Second

// learn takes what a script has said instead of an answer, and reports whether
// that is something to be learnt, after which it may be sent again.
//
// Each shard knows when it was made, and so does each client after its first
// command there. If that is another moment all at once, or the shard is not there
// any more, the server has lost all that it had.
func (c *Client) learn(sh *shard, err error) bool {
	had := *sh.schema.Load()
	if err.Error() == "TICKLESS lost" {
		c.lost(sh, had)
		sh.schema.CompareAndSwap(sh.schema.Load(), &c.schema)
		return true
	}
	is, ok := strings.CutPrefix(err.Error(), "TICKLESS is ")
	if !ok {
		return false
	}
	schema, clock, _ := strings.Cut(is, " ")
	micros, _ := strconv.ParseInt(clock, 10, 64)
	sh.clock.Store(&reading{micros, time.Now()})
	if strings.Contains(had, "@") && had != schema {
		c.lost(sh, had)
	}
	sh.schema.Store(&schema)
	return true
}

// lost reports that a server does not have any more what it had.
func (c *Client) lost(sh *shard, had string) {
	_, born, _ := strings.Cut(had, "@")
	c.warn(fmt.Errorf("%w: shard %d of %q, which was made at %v, was emptied, or its server started again without its data",
		ErrLost, sh.index, c.config.name, parseTime(born).UTC()))
}

// watchInterval is how often a Client that is used looks whether the servers throw
// keys away.
const watchInterval = time.Minute

// watch looks, once in a while, whether the servers throw keys away: somebody may
// have changed their settings. Who looks does not wait.
func (c *Client) watch() {
	now := time.Now().UnixNano()
	last := c.watched.Load()
	if now-last < int64(watchInterval) || !c.watched.CompareAndSwap(last, now) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		nodes, err := c.inspectAll(ctx)
		if err != nil {
			return // who uses the client sees it too
		}
		for i := range nodes {
			c.judge(&nodes[i])
		}
	}()
}

// judge reports a server that throws keys away, or has done so since the last look.
func (c *Client) judge(n *Node) {
	v, looked := c.evicted.Swap(n.Addr, n.Evicted)
	if n.evicts() {
		c.warn(fmt.Errorf("%w (%s has %s)", ErrEviction, n.Addr, n.Eviction))
	}
	if looked && n.Evicted > v.(int64) {
		c.warn(fmt.Errorf("%w: %s has thrown away %d keys, which may have been of this queue", ErrLost, n.Addr, n.Evicted-v.(int64)))
	}
}

// warn reports what no caller is told.
func (c *Client) warn(err error) {
	c.config.log.Error(err.Error())
	if f := c.config.onLoss; f != nil {
		f(err)
	}
}
