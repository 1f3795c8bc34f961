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

// A script is begin.lua, one of the other files of scripts, and the files that they
// include.
type script struct {
	source, sha string
}

// scripts are all scripts.
type scripts struct {
	change, round, now, get, list, scan, stats, repair, astray *script
}

const systemClock = "call('TIME')"

var allScripts = loadScripts(systemClock)

// loadScripts returns the scripts, which read the clock with the Lua code clock.
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

// A call is a script to run in a shard.
type call struct {
	script *script
	shard  *shard
	fields []any // fields of meta that the script reads
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

// run runs a script and returns its answer.
//
// At its first call it checks the schema of shard 0, which every Store has. A Store with
// too many shards would otherwise not notice an error in the shards that only it has, and
// no other Store would find the tasks there.
func (s *Store) run(ctx context.Context, x call) (any, error) {
	if err := s.know(ctx); err != nil {
		if denied(err) {
			err = &unsentError{err} // only the question was sent
		}
		return nil, err
	}
	return s.send(ctx, x)
}

// know returns an error unless shard 0 is known to have this Store's schema.
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

// send runs a script. It repeats a script that had no effect because something was
// unknown:
//
//   - The server does not have the script. send then sends the script's source, and the server
//     keeps it.
//   - The Store does not know when the shard was created, or knows another time.
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

// await calls f, and returns when f returns or, with an error, when the context ends.
// go-redis ignores the context while it waits for an answer, unless its options say
// otherwise. After an error, the results of f must not be read.
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

// maxWaiting is the maximum number of commands under way whose callers can give up or
// have given up.
const maxWaiting = 1024

// noticeFailure reloads a Cluster client's state after a connection has failed. By itself
// the client would keep using a dead master for long.
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

// ints decodes an answer of exactly n numbers.
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
