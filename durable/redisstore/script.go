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
var scriptFiles embed.FS

// A script is begin.lua, followed by another file of the folder scripts. Included files
// are part of the source. sha is its hexadecimal SHA-1.
type script struct {
	source, sha string
}

// scripts holds all scripts of a Store.
type scripts struct {
	change, round, now, get, list, scan, stats, repair, unindexed *script
}

const systemClock = "call('TIME')"

var allScripts = loadScripts(systemClock)

// loadScripts returns the scripts. clock is the Lua expression that reads the time.
func loadScripts(clock string) *scripts {
	load := func(name string) *script {
		text := strings.Replace(readScript("begin"), systemClock, clock, 1) + readScript(name)
		for _, part := range []string{"finish", "expire", "kept", "limits", "count", "lib", "merge", "rooms", "kind"} {
			text = strings.ReplaceAll(text, "--include "+part+".lua\n", readScript(part))
		}
		sum := sha1.Sum([]byte(text))
		return &script{source: text, sha: hex.EncodeToString(sum[:])}
	}
	return &scripts{
		change: load("change"), round: load("round"), now: load("now"), get: load("get"), list: load("list"), scan: load("scan"),
		stats: load("stats"), repair: load("repair"), unindexed: load("unindexed"),
	}
}

func readScript(name string) string {
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic("redisstore: " + err.Error())
	}
	return string(text)
}

// A call is a script with its arguments, to run in a shard.
type call struct {
	script *script
	shard  *shard
	fields []any // fields of meta that the script reads
	args   []any
}

func (s *Store) command(ctx context.Context, x call, name, code string) *redis.Cmd {
	args := make([]any, 0, 5+len(x.shard.keyArgs)+len(x.fields)+len(x.args))
	args = append(args, name, code, len(x.shard.keys))
	args = append(args, x.shard.keyArgs...)
	args = append(args, *x.shard.schema.Load(), len(x.fields))
	args = append(args, x.fields...)
	args = append(args, x.args...)
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// run runs a script and returns its answer. It first checks the schema: a Store with a
// wrong number of shards would put tasks where no other Store finds them.
func (s *Store) run(ctx context.Context, x call) (any, error) {
	if err := s.checkSchema(ctx); err != nil {
		if isDenied(err) {
			err = &unsentError{err} // only the check was sent
		}
		return nil, err
	}
	return s.send(ctx, x)
}

// checkSchema returns an error unless shard 0 has this Store's schema. After the first
// success it does not ask the server again.
func (s *Store) checkSchema(ctx context.Context) error {
	if s.schemaChecked.Load() {
		return nil
	}
	_, err := s.askClock(ctx, s.shards[0])
	if err == nil {
		s.schemaChecked.Store(true)
	}
	return err
}

// send runs a script. It sends the script again in two cases: the server does not have
// the script, or learnSchema has corrected the shard's creation time. The script had no
// effect then.
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
		case !s.learnSchema(x.shard, err):
			return nil, err
		}
	}
}

// await calls f. It returns when f returns or the context ends, because go-redis may
// ignore the context. After an error f may still run: the caller must not read its
// results.
func (s *Store) await(ctx context.Context, f func()) error {
	if ctx.Done() == nil {
		f()
		return nil
	}
	select {
	case s.awaiting <- struct{}{}:
	case <-ctx.Done():
		return &unsentError{ctx.Err()}
	}
	done := make(chan struct{})
	go func() {
		defer func() { <-s.awaiting }()
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

// maxWaiting is the maximum number of goroutines of await that run at the same time.
const maxWaiting = 1024

// noticeFailure handles a failed connection. It reloads a Cluster client's state: the
// client would otherwise use a dead master for long.
func (s *Store) noticeFailure(ctx context.Context, err error) {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) && !strings.HasPrefix(err.Error(), "CLUSTERDOWN") {
		return
	}
	if cluster, ok := s.redis.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
	for _, sh := range s.shards {
		sh.clock.Store(nil) // another server may answer next, with another clock
	}
}

// runIn runs a script in one shard, unless the Store is closed.
func (s *Store) runIn(ctx context.Context, x *script, shard int, args ...any) (any, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	v, err := s.run(ctx, call{script: x, shard: s.shards[shard], args: args})
	return v, explain(err)
}

// decodeInts decodes an answer of exactly n numbers.
func decodeInts(v any, n int) ([]int64, error) {
	list, ok := v.([]any)
	if !ok || len(list) != n {
		return nil, badAnswer(v)
	}
	out := make([]int64, n)
	for i := range list {
		if out[i], ok = list[i].(int64); !ok {
			return nil, badAnswer(v)
		}
	}
	return out, nil
}
