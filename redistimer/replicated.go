package redistimer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// replicated runs scripts and then WAIT, each on the connection of the script,
// for it is this connection's writes that WAIT waits for. It returns a command
// and an error for each; the error is for a script that was carried out and has
// not been confirmed.
func (c *Client) replicated(ctx context.Context, calls []call, replicas int, wait time.Duration) ([]*redis.Cmd, []error) {
	if c.know(ctx) != nil {
		return c.run(ctx, calls...), nil
	}
	cmds := make([]*redis.Cmd, len(calls))
	// Calls by the server that has their shard.
	nodes := make(map[*redis.Client][]int)
	for i, x := range calls {
		node, err := c.master(ctx, x.shard)
		if err != nil {
			cmds[i] = c.command(ctx, x, "evalsha", x.script.sha)
			cmds[i].SetErr(err)
			continue
		}
		nodes[node] = append(nodes[node], i)
	}
	short := make([]error, len(calls))
	for node, list := range nodes {
		slow := node.WithTimeout(node.Options().ReadTimeout + wait)
		confirmed := c.waiting(ctx, slow, calls, cmds, list, wait, replicas, "evalsha")
		var again, moved []int
		for _, i := range list {
			switch err := cmds[i].Err(); {
			case isNoScript(err):
				again = append(again, i)
			case err != nil && strings.HasPrefix(err.Error(), "MOVED"), err != nil && strings.HasPrefix(err.Error(), "ASK"):
				moved = append(moved, i)
			}
		}
		if len(again) > 0 {
			confirmed = c.waiting(ctx, slow, calls, cmds, again, wait, replicas, "eval")
		}
		for _, i := range moved {
			// The shard moves to another master. The task gets there, and how many
			// replicas have it is not known.
			c.noticeFailure(ctx, cmds[i].Err())
			cmds[i] = c.run(ctx, calls[i])[0]
			confirmed = 0
		}
		if confirmed < int64(replicas) {
			for _, i := range list {
				short[i] = fmt.Errorf("%w: %d of %d", ErrNotReplicated, confirmed, replicas)
			}
		}
	}
	return cmds, short
}

// master returns a client for the server that has the shard.
func (c *Client) master(ctx context.Context, sh *shard) (*redis.Client, error) {
	switch r := c.redis.(type) {
	case *redis.Client:
		return r, nil
	case *redis.ClusterClient:
		return r.MasterForKey(ctx, sh.keys[0])
	}
	return nil, fmt.Errorf("redistimer: Replicated needs a *redis.Client or a *redis.ClusterClient, not %T", c.redis)
}

// waiting sends the calls of list and a WAIT down one connection, sets their
// cmds, and returns how many replicas have confirmed.
func (c *Client) waiting(ctx context.Context, node *redis.Client, calls []call, cmds []*redis.Cmd, list []int,
	wait time.Duration, replicas int, name string,
) int64 {
	pipe := node.Pipeline()
	for _, i := range list {
		code := calls[i].script.sha
		if name == "eval" {
			code = calls[i].script.source
		}
		cmds[i] = c.command(ctx, calls[i], name, code)
		_ = pipe.Process(ctx, cmds[i])
	}
	confirmed := redis.NewIntCmd(ctx, "wait", replicas, max(1, wait.Milliseconds()))
	_ = pipe.Process(ctx, confirmed)
	_, _ = pipe.Exec(ctx)
	return confirmed.Val()
}
