package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// A script fails if the Store does not know the shard's creation time, or has a wrong
// one. handleSchemaError then corrects the time, and returns nil: the command may be sent
// again. If the time was wrong or the shard is gone, handleSchemaError reports that the
// server has lost data. It upgrades a shard with the schema before. It returns any other
// error.
func (s *Store) handleSchemaError(ctx context.Context, sh *shard, err error) error {
	if stored, ok := strings.CutPrefix(err.Error(), "TICKLESS schema "); ok && s.canUpgrade(stored) {
		return s.upgradeShard(ctx, sh, stored)
	}
	oldSchema := *sh.schema.Load()
	if err.Error() == "TICKLESS lost" {
		s.reportLoss(sh, oldSchema)
		sh.schema.CompareAndSwap(sh.schema.Load(), &s.schema)
		return nil
	}
	current, ok := strings.CutPrefix(err.Error(), "TICKLESS is ")
	if !ok {
		return err
	}
	schema, serverTime, _ := strings.Cut(current, " ")
	now, _ := strconv.ParseInt(serverTime, 10, 64)
	sh.saveReading(store.Time(now))
	if strings.Contains(oldSchema, "@") && oldSchema != schema {
		s.reportLoss(sh, oldSchema)
	}
	sh.schema.Store(&schema)
	return nil
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
