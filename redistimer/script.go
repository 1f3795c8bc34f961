package redistimer

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var sources embed.FS

// A script is one of scripts/*.lua behind begin.lua, and most often with lib.lua
// in it.
type script struct {
	source, sha string
}

var (
	scheduleScript   = load("schedule")
	claimScript      = load("claim")
	finishScript     = load("finish")
	extendScript     = load("extend")
	cancelScript     = load("cancel")
	rescheduleScript = load("reschedule")
	getScript        = load("get")
	statsScript      = load("stats")
	pauseScript      = load("pause")
	checkScript      = load("check")
	deadScript       = load("dead")
	requeueScript    = load("requeue")
	purgeScript      = load("purge")
	repairScript     = load("repair")
)

func load(name string) *script {
	text := strings.Replace(read("begin")+read(name), "--include lib.lua\n", read("lib"), 1)
	sum := sha1.Sum([]byte(text))
	return &script{source: text, sha: hex.EncodeToString(sum[:])}
}

func read(name string) string {
	text, err := sources.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic("redistimer: " + err.Error())
	}
	return string(text)
}

// maxBatch is the largest number of tasks that one script is given. A server
// does nothing else while a script runs: 250 tasks take 1 to 3 ms, 1000 took up
// to 11.
const maxBatch = 250

// A call is a script, to be run in a shard.
type call struct {
	script *script
	shard  *shard
	args   []any // without the schema
}

func (c *Client) command(ctx context.Context, x call, name, code string) *redis.Cmd {
	args := make([]any, 0, 4+len(x.shard.keys)+len(x.args))
	args = append(args, name, code, len(x.shard.keys))
	args = append(args, x.shard.args...)
	args = append(args, c.schema)
	args = append(args, x.args...)
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// run runs scripts, in one pipeline if there are several, and returns a command
// for each with its answer or its error.
//
// A server that does not know a script says so, in a pipeline too, which
// go-redis leaves to its users: then the script is sent as a whole, and known
// from then on. Nothing was carried out of a call that is sent again.
//
// The first time it asks shard 0, which every client of the queue has, for the
// schema: a client with more shards than the queue would not notice in those that
// are its alone, and what it puts there nobody would find.
func (c *Client) run(ctx context.Context, calls ...call) []*redis.Cmd {
	if err := c.know(ctx); err != nil {
		cmds := make([]*redis.Cmd, len(calls))
		for i, x := range calls {
			cmds[i] = c.command(ctx, x, "evalsha", x.script.sha)
			cmds[i].SetErr(err)
		}
		return cmds
	}
	return c.send(ctx, calls...)
}

// know returns an error if the queue is not known to have this schema.
func (c *Client) know(ctx context.Context) error {
	if c.known.Load() {
		return nil
	}
	err := c.send(ctx, call{checkScript, c.shards[0], nil})[0].Err()
	c.known.Store(err == nil)
	return err
}

func (c *Client) send(ctx context.Context, calls ...call) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(calls))
	for i, x := range calls {
		cmds[i] = c.command(ctx, x, "evalsha", x.script.sha)
	}
	c.process(ctx, cmds)
	var again []*redis.Cmd
	for i, x := range calls {
		if isNoScript(cmds[i].Err()) {
			cmds[i] = c.command(ctx, x, "eval", x.script.source)
			again = append(again, cmds[i])
		}
	}
	if len(again) > 0 {
		c.process(ctx, again)
	}
	return cmds
}

func (c *Client) process(ctx context.Context, cmds []*redis.Cmd) {
	if len(cmds) == 1 {
		_ = c.redis.Process(ctx, cmds[0])
	} else {
		pipe := c.redis.Pipeline()
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd)
		}
		_, _ = pipe.Exec(ctx)
	}
	for _, cmd := range cmds {
		if c.noticeFailure(ctx, cmd.Err()) {
			return
		}
	}
}

// noticeFailure has a cluster's client look at who is master of what, if a
// connection failed: by itself it asks the dead for long.
func (c *Client) noticeFailure(ctx context.Context, err error) bool {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) && !strings.HasPrefix(err.Error(), "CLUSTERDOWN") {
		return false
	}
	if cluster, ok := c.redis.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
	return true
}

func isNoScript(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") }

// explain makes the errors of the scripts those of this package.
func (c *Client) explain(err error) error {
	if err == nil {
		return nil
	}
	if _, has, ok := strings.Cut(err.Error(), "TICKLESS schema "); ok {
		return fmt.Errorf("%w: version and shards of %q are %s, this client's %s", ErrSchema, c.config.name, has, c.schema)
	}
	return fmt.Errorf("redistimer: %w", err)
}

// one runs a script in one shard.
func (c *Client) one(ctx context.Context, s *script, sh *shard, args ...any) (any, error) {
	v, err := c.run(ctx, call{s, sh, args})[0].Result()
	return v, c.explain(err)
}

// digits takes an answer that is a digit for each of n items.
func digits(cmd *redis.Cmd, n int) (string, error) {
	v, err := cmd.Result()
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if i, isInt := v.(int64); isInt { // miniredis takes a digit for a number
		s, ok = strconv.FormatInt(i, 10), true
	}
	if !ok || len(s) != n {
		return "", fmt.Errorf("unexpected answer of a script: %v", v)
	}
	return s, nil
}

// ints takes an answer that consists of numbers.
func ints(v any, n int) ([]int64, error) {
	list, ok := v.([]any)
	if !ok || len(list) != n {
		return nil, fmt.Errorf("redistimer: unexpected answer of a script: %v", v)
	}
	out := make([]int64, n)
	for i := range list {
		if out[i], ok = list[i].(int64); !ok {
			return nil, fmt.Errorf("redistimer: unexpected answer of a script: %v", v)
		}
	}
	return out, nil
}
