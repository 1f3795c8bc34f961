package redisstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// learn handles an error with which a script says that the shard is lost or is another
// than the Store knows. It reports whether the command may be sent again.
//
// Each shard records when it was created, and each Store remembers that after its first
// command to the shard. If the shard has another creation time, or no longer exists,
// the server has lost all its data.
func (s *Store) learn(sh *shard, err error) bool {
	known := *sh.schema.Load()
	if err.Error() == "TICKLESS lost" {
		s.reportLoss(sh, known)
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
	if strings.Contains(known, "@") && known != schema {
		s.reportLoss(sh, known)
	}
	sh.schema.Store(&schema)
	return true
}

// reportLoss reports to the log and to the handler that a server has lost its data.
func (s *Store) reportLoss(sh *shard, known string) {
	_, born, _ := strings.Cut(known, "@")
	err := fmt.Errorf("%w: shard %d of %q, created at %v, was emptied, or its server restarted without its data",
		ErrLost, sh.index, s.config.name, parseTime(born).Std().UTC())
	s.config.log.Error(err.Error())
	if f := s.config.onLoss; f != nil {
		f(err)
	}
}
