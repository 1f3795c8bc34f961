package redisstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// A script fails if the Store does not know the shard's creation time, or has a wrong
// one. handleSchemaError then corrects the time, and returns true: the command may be sent
// again. If the time was wrong or the shard is gone, handleSchemaError reports that the
// server has lost data.
func (s *Store) handleSchemaError(sh *shard, err error) bool {
	oldSchema := *sh.schema.Load()
	if err.Error() == "TICKLESS lost" {
		s.reportLoss(sh, oldSchema)
		sh.schema.CompareAndSwap(sh.schema.Load(), &s.schema)
		return true
	}
	current, ok := strings.CutPrefix(err.Error(), "TICKLESS is ")
	if !ok {
		return false
	}
	schema, serverTime, _ := strings.Cut(current, " ")
	now, _ := strconv.ParseInt(serverTime, 10, 64)
	sh.saveReading(store.Time(now))
	if strings.Contains(oldSchema, "@") && oldSchema != schema {
		s.reportLoss(sh, oldSchema)
	}
	sh.schema.Store(&schema)
	return true
}

// reportLoss logs that a server has lost a shard's data, and calls the loss handler.
func (s *Store) reportLoss(sh *shard, oldSchema string) {
	_, created, _ := strings.Cut(oldSchema, "@")
	err := fmt.Errorf("%w: shard %d of %q, created at %v, was emptied, or its server restarted without its data",
		ErrLost, sh.index, s.config.name, parseTime(created).Std().UTC())
	s.config.log.Error(err.Error())
	if f := s.config.onLoss; f != nil {
		f(err)
	}
}
