package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"strings"
	"time"

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
	change, round, now, get, list, scan, stats, forecast, repair, checked *script
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
		stats: load("stats"), forecast: load("forecast"), repair: load("repair"), checked: load("checked"),
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

// run runs scripts, in one pipeline if there are several, and returns a command
// for each with its answer or its error.
//
// The first time it asks shard 0, which every Store has, for the schema: a
// Store with more shards than there are would not notice in those that
// are its alone, and what it puts there nobody would find.
func (s *Store) run(ctx context.Context, calls ...call) []*redis.Cmd {
	if err := s.know(ctx); err != nil {
		if denied(err) {
			err = &unsentError{err} // the question was refused, and nothing was sent but that
		}
		cmds := make([]*redis.Cmd, len(calls))
		for i := range cmds {
			cmds[i] = failed(ctx, err)
		}
		return cmds
	}
	return s.send(ctx, calls)
}

// know returns an error if what is there is not known to have this schema.
func (s *Store) know(ctx context.Context) error {
	if s.known.Load() {
		s.watch()
		return nil
	}
	if _, err := s.check(ctx, s.shards[0]); err != nil {
		return err
	}
	s.known.Store(true)
	s.watch()
	return nil
}

// send runs scripts. What comes back may be that there is something to be learnt
// first, and that nothing was done:
//
//   - A server that does not know a script says so, in a pipeline too, which
//     go-redis leaves to its users: then the script is sent as a whole, and known
//     from then on.
//   - A shard of which the Store did not know when it was made, or believed
//     something else, says so.
func (s *Store) send(ctx context.Context, calls []call) []*redis.Cmd {
	const tries = 5
	cmds := make([]*redis.Cmd, len(calls))
	todo := make([]int, len(calls))
	for i := range todo {
		todo[i] = i
	}
	var unknown map[int]bool // scripts that the server does not know
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			for _, i := range todo {
				cmds[i] = failed(ctx, &unsentError{err})
			}
			return cmds
		}
		some := make([]*redis.Cmd, len(todo))
		for j, i := range todo {
			if unknown[i] {
				some[j] = s.command(ctx, calls[i], "eval", calls[i].script.source)
			} else {
				some[j] = s.command(ctx, calls[i], "evalsha", calls[i].script.sha)
			}
		}
		if err := s.await(ctx, func() { s.pipeline(ctx, some) }); err != nil {
			for _, i := range todo {
				cmds[i] = failed(ctx, err)
			}
			return cmds
		}
		var again []int
		for j, i := range todo {
			cmds[i] = some[j]
			err := some[j].Err()
			if err == nil || try == tries {
				continue
			}
			if isNoScript(err) {
				if unknown == nil {
					unknown = make(map[int]bool)
				}
				unknown[i] = true
				again = append(again, i)
			} else if s.learn(calls[i].shard, err) {
				again = append(again, i)
			}
		}
		if len(again) == 0 {
			return cmds
		}
		todo = again
	}
}

// failed returns a command that has an error.
func failed(ctx context.Context, err error) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(err)
	return cmd
}

// pipeline sends commands through the caller's client.
//
// A cluster's master that was frozen answers what had come meanwhile, before it
// learns that another one has taken its place: what it says it has done is lost. So
// a late answer does not count. The commands are sent once more, to whoever is the
// master then, which does no harm: see command.go.
func (s *Store) pipeline(ctx context.Context, cmds []*redis.Cmd) {
	cluster, ok := s.redis.(*redis.ClusterClient)
	begin := time.Now()
	s.exec(ctx, cmds)
	if !ok || time.Since(begin) < lateAnswer {
		return
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		// It is not known whether the answers are worth anything.
		for _, cmd := range cmds {
			cmd.SetErr(errDisturbed)
		}
		return
	}
	cluster.ReloadState(ctx)
	again := make([]*redis.Cmd, len(cmds))
	for i, cmd := range cmds {
		again[i] = redis.NewCmd(ctx, cmd.Args()...)
		again[i].SetFirstKeyPos(3)
	}
	s.exec(ctx, again)
	for i, cmd := range again {
		cmds[i].SetVal(cmd.Val())
		cmds[i].SetErr(cmd.Err())
	}
}

const (
	// lateAnswer is how long an answer of a cluster takes that does not count. No
	// master is replaced that was silent for less: that takes cluster-node-timeout.
	lateAnswer = time.Second
	// settle is how long a master that comes back takes to learn that it is none.
	settle = 200 * time.Millisecond
)

func (s *Store) exec(ctx context.Context, cmds []*redis.Cmd) {
	if len(cmds) == 1 {
		_ = s.redis.Process(ctx, cmds[0])
	} else {
		pipe := s.redis.Pipeline()
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd)
		}
		_, _ = pipe.Exec(ctx)
	}
	for _, cmd := range cmds {
		if s.noticeFailure(ctx, cmd.Err()) {
			return
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
func (s *Store) noticeFailure(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	var reply redis.Error
	if errors.As(err, &reply) && !strings.HasPrefix(err.Error(), "CLUSTERDOWN") {
		return false
	}
	if cluster, ok := s.redis.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
	for _, sh := range s.shards {
		sh.clock.Store(nil) // there may be another server, with another clock
	}
	return true
}

func isNoScript(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") }

// one runs a script in one shard.
func (s *Store) one(ctx context.Context, x *script, shard int, args ...any) (any, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	v, err := s.run(ctx, call{script: x, shard: s.shards[shard], args: args})[0].Result()
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
