package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// replicated runs scripts and then WAIT, each on the connection of the script,
// for it is this connection's writes that WAIT waits for. (A command that comes for
// the second time writes too, for that: see scripts/change.lua.) It returns a command
// and an error for each; the error is for a script that was carried out and has
// not been confirmed.
func (s *Store) replicated(ctx context.Context, calls []call, replicas int, wait time.Duration) ([]*redis.Cmd, []error) {
	confirmed := make([]atomic.Int64, len(calls))
	cmds := s.send(ctx, func(ctx context.Context, cmds []*redis.Cmd, calls []call, numbers []int) {
		// By the server that has their shard.
		nodes := make(map[*redis.Client][]int)
		for j, i := range numbers {
			node, err := s.master(ctx, calls[i].shard)
			if err != nil {
				cmds[j].SetErr(&unsentError{err})
				continue
			}
			nodes[node] = append(nodes[node], j)
		}
		for node, list := range nodes {
			n := waitFor(ctx, node, cmds, list, wait, replicas)
			for _, j := range list {
				confirmed[numbers[j]].Store(n)
				if err := cmds[j].Err(); err != nil {
					if text := err.Error(); strings.HasPrefix(text, "MOVED") || strings.HasPrefix(text, "ASK") {
						// The shard moves to another master. The task gets there, and how
						// many replicas have it is not known.
						s.noticeFailure(ctx, errDisturbed)
						cmds[j].SetErr(nil)
						_ = s.redis.Process(ctx, cmds[j])
						confirmed[numbers[j]].Store(0)
					}
					s.noticeFailure(ctx, err)
				}
			}
		}
	}, calls)
	short := make([]error, len(calls))
	for i := range short {
		if n := confirmed[i].Load(); n < int64(replicas) {
			short[i] = fmt.Errorf("%w: %d of %d", ErrNotReplicated, n, replicas)
		}
	}
	return cmds, short
}

// master returns a client for the server that has the shard.
func (s *Store) master(ctx context.Context, sh *shard) (*redis.Client, error) {
	if r, ok := s.redis.(*redis.ClusterClient); ok {
		return r.MasterForKey(ctx, sh.keys[0])
	}
	return s.redis.(*redis.Client), nil
}

// waitFor sends the commands of list and a WAIT down one connection, and returns
// how many replicas have confirmed.
func waitFor(ctx context.Context, node *redis.Client, cmds []*redis.Cmd, list []int, wait time.Duration, replicas int) int64 {
	pipe := node.WithTimeout(node.Options().ReadTimeout + wait).Pipeline()
	for _, j := range list {
		_ = pipe.Process(ctx, cmds[j])
	}
	confirmed := redis.NewIntCmd(ctx, waitCommand(replicas, wait)...)
	_ = pipe.Process(ctx, confirmed)
	_, _ = pipe.Exec(ctx)
	return confirmed.Val()
}

// waitCommand has a server wait until replicas have what was sent before it, for a time in
// whole milliseconds. None would be for ever.
func waitCommand(replicas int, wait time.Duration) []any {
	return []any{"wait", replicas, max(1, wait.Milliseconds())}
}
