package redistimer

import (
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
	c.config.log.Error("redistimer: the server has lost the tasks of a shard: it was emptied, or started again without its data",
		"queue", c.config.name, "shard", sh.index)
}
