package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// learn takes what a script has said instead of an answer, and reports whether
// that is something to be learnt, after which it may be sent again.
//
// Each shard knows when it was made, and so does each Store after its first
// command there. If that is another moment all at once, or the shard is not there
// any more, the server has lost all that it had.
func (s *Store) learn(sh *shard, err error) bool {
	had := *sh.schema.Load()
	if err.Error() == "TICKLESS lost" {
		s.lost(sh, had)
		sh.schema.CompareAndSwap(sh.schema.Load(), &s.schema)
		return true
	}
	is, ok := strings.CutPrefix(err.Error(), "TICKLESS is ")
	if !ok {
		return false
	}
	schema, clock, _ := strings.Cut(is, " ")
	now, _ := strconv.ParseInt(clock, 10, 64)
	sh.read(store.Time(now))
	if strings.Contains(had, "@") && had != schema {
		s.lost(sh, had)
	}
	sh.schema.Store(&schema)
	return true
}

// lost reports that a server does not have any more what it had.
func (s *Store) lost(sh *shard, had string) {
	_, born, _ := strings.Cut(had, "@")
	s.warn(fmt.Errorf("%w: shard %d of %q, which was made at %v, was emptied, or its server started again without its data",
		ErrLost, sh.index, s.config.name, parseTime(born).Std().UTC()))
}

// watchInterval is how often a Store that is used looks whether the servers throw
// keys away.
const watchInterval = time.Minute

// watch looks, once in a while, whether the servers throw keys away: somebody may
// have changed their settings. Who looks does not wait.
func (s *Store) watch() {
	now := time.Now().UnixNano()
	last := s.watched.Load()
	if now-last < int64(watchInterval) || !s.watched.CompareAndSwap(last, now) {
		return
	}
	s.looking.Go(func() {
		nodes, err := s.inspectAll(context.Background())
		if err != nil {
			return // who uses the Store sees it too
		}
		for i := range nodes {
			s.judge(&nodes[i])
		}
	})
}

// judge reports a server that throws keys away, or has done so since the last look.
func (s *Store) judge(n *node) {
	v, looked := s.evicted.Swap(n.Addr, n.Evicted)
	if n.evicts() {
		s.warn(fmt.Errorf("%w (%s has %s)", ErrEviction, n.Addr, n.Eviction))
	}
	if looked && n.Evicted > v.(int64) {
		s.warn(fmt.Errorf("%w: %s has thrown away %d keys, which may have been of this store", ErrLost, n.Addr, n.Evicted-v.(int64)))
	}
}

// warn reports what no caller is told.
func (s *Store) warn(err error) {
	s.config.log.Error(err.Error())
	if f := s.config.onLoss; f != nil {
		f(err)
	}
}
