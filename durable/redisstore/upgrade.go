package redisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// canUpgrade reports whether a stored schema is that of the version before, or of a shard
// that a Store upgrades. Such a shard has this Store's number of shards.
func (s *Store) canUpgrade(stored string) bool {
	return strings.HasPrefix(stored, fmt.Sprintf("%d/%d@", schemaVersion-1, s.config.shardCount)) ||
		strings.HasPrefix(stored, fmt.Sprintf("%dto%d/%d@", schemaVersion-1, schemaVersion, s.config.shardCount))
}

// upgradeEntries is how many entries a step of an upgrade reads.
const upgradeEntries = 200

// upgradeShard changes a shard's data to this Store's schema. It blocks the server for a few
// milliseconds at a time, but commands to the shard wait until the end: about ten seconds for
// a million finished runs. Several Stores may do this at the same time.
//
// If the context ends, the upgrade continues. The command that waits for it was not sent.
func (s *Store) upgradeShard(ctx context.Context, sh *shard, stored string) error {
	var err error
	ended := s.callWithContext(ctx, func() {
		sh.upgrading.Lock()
		defer sh.upgrading.Unlock()
		err = s.runUpgrade(context.WithoutCancel(ctx), sh, stored)
	})
	switch {
	case ended != nil:
		return &unsentError{ended}
	case err != nil:
		return fmt.Errorf("upgrading shard %d: %w: %w", sh.index, store.ErrNotDone, err)
	}
	return nil
}

func (s *Store) runUpgrade(ctx context.Context, sh *shard, stored string) error {
	version, rest, _ := strings.Cut(stored, "/")
	for _, step := range []string{"begin", "past", "kinds", "end"} {
		for cursor := "0"; ; {
			v, err := s.sendCall(ctx, scriptCall{script: s.scripts.upgrade, shard: sh, schema: version + "/" + rest, args: []any{step, cursor, upgradeEntries}})
			if err != nil && strings.HasPrefix(err.Error(), "TICKLESS ") {
				return nil // another Store has begun or ended the upgrade: the caller looks again
			}
			if err != nil {
				return err
			}
			var ok bool
			if cursor, ok = v.(string); !ok {
				return answerError(v)
			}
			if cursor == "0" {
				break
			}
		}
		version = fmt.Sprintf("%dto%d", schemaVersion-1, schemaVersion)
	}
	return nil
}
