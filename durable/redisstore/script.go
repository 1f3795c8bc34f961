package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var sources embed.FS

// A script is one of scripts/*.lua behind begin.lua, with what it includes.
type script struct {
	source, sha string
}

// scripts are all of them.
type scripts struct {
	change, round, now, get, list, scan, stats, repair, astray *script
}

const systemClock = "call('TIME')"

var allScripts = loadScripts(systemClock)

// loadScripts has the scripts read the clock so.
func loadScripts(clock string) *scripts {
	load := func(name string) *script {
		text := strings.Replace(read("begin"), systemClock, clock, 1) + read(name)
		for _, part := range []string{"finish", "expire", "kept", "limits", "count", "lib", "merge", "rooms", "kind"} {
			text = strings.ReplaceAll(text, "--include "+part+".lua\n", read(part))
		}
		sum := sha1.Sum([]byte(text))
		return &script{source: text, sha: hex.EncodeToString(sum[:])}
	}
	return &scripts{
		change: load("change"), round: load("round"), now: load("now"), get: load("get"), list: load("list"), scan: load("scan"),
		stats: load("stats"), repair: load("repair"), astray: load("astray"),
	}
}

func read(name string) string {
	text, err := sources.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic("redisstore: " + err.Error())
	}
	return string(text)
}

// A call is a script, to be run in a shard.
type call struct {
	script *script
	shard  *shard
	fields []any // of meta, which the script reads
	args   []any
}

func (s *Store) command(ctx context.Context, x call, name, code string) *redis.Cmd {
	args := make([]any, 0, 5+len(x.shard.args)+len(x.fields)+len(x.args))
	args = append(args, name, code, len(x.shard.keys))
	args = append(args, x.shard.args...)
	args = append(args, *x.shard.schema.Load(), len(x.fields))
	args = append(args, x.fields...)
	args = append(args, x.args...)
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// run runs a script, and returns its answer.
//
// The first time it asks shard 0, which every Store has, for the schema: a
// Store with more shards than there are would not notice in those that
// are its alone, and what it puts there nobody would find.
func (s *Store) run(ctx context.Context, x call) (any, error) {
	if err := s.know(ctx); err != nil {
		if denied(err) {
			err = &unsentError{err} // the question was refused, and nothing was sent but that
		}
		return nil, err
	}
	return s.send(ctx, x)
}

// know returns an error if what is there is not known to have this schema.
func (s *Store) know(ctx context.Context) error {
	if s.known.Load() {
		return nil
	}
	_, err := s.check(ctx, s.shards[0])
	if err == nil {
		s.known.Store(true)
	}
	return err
}

// send runs a script. The answer may be that there is something to be learnt first, and that
// nothing was done:
//
//   - A server that does not know the script says so: then the script is sent as a whole,
//     and known from then on.
//   - A shard of which the Store did not know when it was made, or believed something else,
//     says so.
func (s *Store) send(ctx context.Context, x call) (any, error) {
	const tries = 5
	name, code := "evalsha", x.script.sha
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, &unsentError{err}
		}
		cmd := s.command(ctx, x, name, code)
		if err := s.await(ctx, func() {
			s.noticeFailure(ctx, s.redis.Process(ctx, cmd))
		}); err != nil {
			return nil, err
		}
		v, err := cmd.Result()
		switch {
		case err == nil || try == tries:
			return v, err
		case strings.HasPrefix(err.Error(), "NOSCRIPT"):
			name, code = "eval", x.script.source
		case !s.learn(x.shard, err):
			return nil, err
		}
	}
}

// await calls f, and returns when f does or, with an error, when the context
// ends: go-redis does not heed a context while it waits for an answer, unless
// its options say so. What f does is then read by nobody any more.
func (s *Store) await(ctx context.Context, f func()) error {
	if ctx.Done() == nil {
		f()
		return nil
	}
	select {
	case s.waiting <- struct{}{}:
	case <-ctx.Done():
		return &unsentError{ctx.Err()}
	}
	done := make(chan struct{})
	go func() {
		defer func() { <-s.waiting }()
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxWaiting is how many commands of a Store may wait for a server whose callers
// can give up, and may have given up.
const maxWaiting = 1024

// noticeFailure has a cluster's client look at who is master of what, if a
// connection failed: by itself it asks the dead for long.
func (s *Store) noticeFailure(ctx context.Context, err error) {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) && !strings.HasPrefix(err.Error(), "CLUSTERDOWN") {
		return
	}
	if cluster, ok := s.redis.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
	for _, sh := range s.shards {
		sh.clock.Store(nil) // there may be another server, with another clock
	}
}

// one runs a script in one shard.
func (s *Store) one(ctx context.Context, x *script, shard int, args ...any) (any, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	v, err := s.run(ctx, call{script: x, shard: s.shards[shard], args: args})
	return v, explain(err)
}

// ints takes an answer that consists of numbers.
func ints(v any, n int) ([]int64, error) {
	list, ok := v.([]any)
	if !ok || len(list) != n {
		return nil, unexpected(v)
	}
	out := make([]int64, n)
	for i := range list {
		if out[i], ok = list[i].(int64); !ok {
			return nil, unexpected(v)
		}
	}
	return out, nil
}
