package redisstore

import (
	"cmp"
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// A script is begin.lua, followed by another file of the folder scripts. A file includes others
// that define functions, where it needs them: defining a function costs as much as a Redis
// command. sha1Hex is the hexadecimal SHA-1 of the source.
type script struct {
	source, sha1Hex string
}

// scripts holds all scripts of a Store.
type scripts struct {
	change, round, now, get, list, scan, stats, workers, repair, unindexed, upgrade *script
}

const luaClockCall = "call('TIME')"

var allScripts = loadScripts(luaClockCall)

// loadScripts returns the scripts. clock is the Lua expression that reads the time.
func loadScripts(clock string) *scripts {
	loadScript := func(name string) *script {
		source := strings.Replace(readScript("begin"), luaClockCall, clock, 1) + readScript(name)
		digest := sha1.Sum([]byte(source))
		return &script{source: source, sha1Hex: hex.EncodeToString(digest[:])}
	}
	return &scripts{
		change: loadScript("change"), round: loadScript("round"), now: loadScript("now"), get: loadScript("get"), list: loadScript("list"), scan: loadScript("scan"),
		stats: loadScript("stats"), workers: loadScript("workers"), repair: loadScript("repair"), unindexed: loadScript("unindexed"),
		upgrade: loadScript("upgrade"),
	}
}

var includeLine = regexp.MustCompile(`(?m)^--include (\w+)\.lua\n`)

// readScript returns a file of the folder scripts, with the functions of the files that it
// includes.
func readScript(name string) string {
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic("redisstore: " + err.Error())
	}
	return includeLine.ReplaceAllStringFunc(string(text), func(line string) string {
		return readScript(includeLine.FindStringSubmatch(line)[1])
	})
}

// A scriptCall is a script with its arguments, to run in a shard.
type scriptCall struct {
	script     *script
	shard      *shard
	metaFields []any // fields of meta that the script reads
	args       []any
	schema     string // the first argument, or empty for the shard's schema
}

func (s *Store) newCommand(ctx context.Context, x scriptCall, name, code string) *redis.Cmd {
	args := make([]any, 0, 5+len(x.shard.keyArgs)+len(x.metaFields)+len(x.args))
	args = append(args, name, code, len(x.shard.keys))
	args = append(args, x.shard.keyArgs...)
	args = append(args, cmp.Or(x.schema, *x.shard.schema.Load()), len(x.metaFields))
	args = append(args, x.metaFields...)
	args = append(args, x.args...)
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// runCall runs a script and returns its answer. It first checks the schema: a Store with a
// wrong number of shards would put tasks where no other Store finds them.
func (s *Store) runCall(ctx context.Context, x scriptCall) (any, error) {
	if err := s.checkSchema(ctx); err != nil {
		return nil, &unsentError{err} // only the check was sent
	}
	return s.sendCall(ctx, x)
}

// checkSchema returns an error unless shard 0 has this Store's schema. After the first
// success it does not ask the server again.
func (s *Store) checkSchema(ctx context.Context) error {
	if s.schemaChecked.Load() {
		return nil
	}
	_, err := s.readServerClock(ctx, s.shards[0])
	if err == nil {
		s.schemaChecked.Store(true)
	}
	return err
}

// sendCall runs a script. It sends the script again if the server does not have the
// script, or if handleSchemaError has corrected the shard's creation time or upgraded the
// shard. In these cases the script had no effect.
func (s *Store) sendCall(ctx context.Context, x scriptCall) (any, error) {
	const tries = 5
	name, code := "evalsha", x.script.sha1Hex
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, &unsentError{err}
		}
		cmd := s.newCommand(ctx, x, name, code)
		if err := s.callWithContext(ctx, func() {
			s.handleFailedConn(ctx, s.client.Process(ctx, cmd))
		}); err != nil {
			return nil, err
		}
		v, err := cmd.Result()
		switch {
		case err == nil || try == tries:
			return v, err
		case strings.HasPrefix(err.Error(), "NOSCRIPT"):
			name, code = "eval", x.script.source
		case x.schema != "":
			return nil, err
		default:
			if err := s.handleSchemaError(ctx, x.shard, err); err != nil {
				return nil, err
			}
		}
	}
}

// callWithContext calls f. It returns when f returns or the context ends, because go-redis may
// ignore the context. After an error f may still run: the caller must not read its
// results.
func (s *Store) callWithContext(ctx context.Context, f func()) error {
	if ctx.Done() == nil {
		f()
		return nil
	}
	select {
	case s.callSlots <- struct{}{}:
	case <-ctx.Done():
		return &unsentError{ctx.Err()}
	}
	done := make(chan struct{})
	go func() {
		defer func() { <-s.callSlots }()
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

// maxConcurrentCalls is the maximum number of goroutines of callWithContext.
const maxConcurrentCalls = 1024

// handleFailedConn handles a failed connection. It reloads a Cluster client's state: the
// client would otherwise use a dead master for long.
func (s *Store) handleFailedConn(ctx context.Context, err error) {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) && !strings.HasPrefix(err.Error(), "CLUSTERDOWN") {
		return
	}
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
	for _, sh := range s.shards {
		sh.lastReading.Store(nil) // another server may answer next, with another clock
	}
}

// runScript runs a script in one shard, unless the Store is closed.
func (s *Store) runScript(ctx context.Context, x *script, shard int, args ...any) (any, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	v, err := s.runCall(ctx, scriptCall{script: x, shard: s.shards[shard], args: args})
	return v, toStoreError(err)
}
