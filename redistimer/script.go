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
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var sources embed.FS

// A script is one of scripts/*.lua behind begin.lua, and most often with once.lua,
// clock.lua and lib.lua in it.
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
	checkedScript    = load("checked")
)

func load(name string) *script {
	text := read("begin") + read(name)
	for _, part := range []string{"once", "clock", "lib"} {
		text = strings.Replace(text, "--include "+part+".lua\n", read(part), 1)
	}
	// What it wants to know of meta, beside what all do.
	also := ""
	if _, rest, ok := strings.Cut(text, "\n--also "); ok {
		also, _, _ = strings.Cut(rest, "\n")
		also = ", " + also
	}
	text = strings.Replace(text, " --[[also]]", also, 1)
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
	args   []any // without those of the header
	header header
}

// A header is what every script is told first, beside the schema: see
// scripts/begin.lua. The zero header is for what changes nothing, or may be
// carried out any number of times.
type header struct {
	sender string
	number int64
	until  int64 // microseconds by the clock of Redis; 0: no end
}

func (c *Client) command(ctx context.Context, x call, name, code string) *redis.Cmd {
	args := make([]any, 0, 7+len(x.shard.keys)+len(x.args))
	args = append(args, name, code, len(x.shard.keys))
	args = append(args, x.shard.args...)
	args = append(args, *x.shard.schema.Load())
	if h := x.header; h.sender == "" {
		args = append(args, "-", "0", "")
	} else if h.until == 0 {
		args = append(args, h.sender, digits16(h.number), "")
	} else {
		args = append(args, h.sender, digits16(h.number), strconv.FormatInt(h.until, 10))
	}
	args = append(args, x.args...)
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// digits16 writes a time or a number as scripts compare and cut it: in 16 digits.
func digits16(n int64) string {
	s := strconv.FormatInt(n, 10)
	if len(s) >= 16 {
		return s
	}
	return "0000000000000000"[len(s):] + s
}

// run runs scripts, in one pipeline if there are several, and returns a command
// for each with its answer or its error.
//
// The first time it asks shard 0, which every client of the queue has, for the
// schema: a client with more shards than the queue would not notice in those that
// are its alone, and what it puts there nobody would find.
func (c *Client) run(ctx context.Context, calls ...call) []*redis.Cmd {
	if err := c.know(ctx); err != nil {
		cmds := make([]*redis.Cmd, len(calls))
		for i := range cmds {
			cmds[i] = failed(ctx, err)
		}
		return cmds
	}
	return c.send(ctx, c.pipeline, calls)
}

// know returns an error if the queue is not known to have this schema.
func (c *Client) know(ctx context.Context) error {
	if c.known.Load() {
		c.watch()
		return nil
	}
	if err := c.check(ctx, c.shards[0]); err != nil {
		return err
	}
	if r := c.shards[0].clock.Load(); r != nil {
		c.begun.CompareAndSwap(nil, r)
		c.known.Store(true)
		c.watch()
		return nil
	}
	return errDisturbed
}

// A sender sends commands and waits for their answers. The numbers are those of
// the calls.
type sender func(ctx context.Context, cmds []*redis.Cmd, calls []call, numbers []int)

// send runs scripts. What comes back may be that there is something to be learnt
// first, and that nothing was done:
//
//   - A server that does not know a script says so, in a pipeline too, which
//     go-redis leaves to its users: then the script is sent as a whole, and known
//     from then on.
//   - A shard of which the client did not know when it was made, or believed
//     something else, says so.
func (c *Client) send(ctx context.Context, send sender, calls []call) []*redis.Cmd {
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
				some[j] = c.command(ctx, calls[i], "eval", calls[i].script.source)
			} else {
				some[j] = c.command(ctx, calls[i], "evalsha", calls[i].script.sha)
			}
		}
		if err := c.await(ctx, func() { send(ctx, some, calls, todo) }); err != nil {
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
			} else if c.learn(calls[i].shard, err) {
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
func (c *Client) pipeline(ctx context.Context, cmds []*redis.Cmd, _ []call, _ []int) {
	cluster, ok := c.redis.(*redis.ClusterClient)
	begin := time.Now()
	c.exec(ctx, cmds)
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
	c.exec(ctx, again)
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

func (c *Client) exec(ctx context.Context, cmds []*redis.Cmd) {
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

// await calls f, and returns when f does or, with an error, when the context
// ends: go-redis does not heed a context while it waits for an answer, unless
// its options say so. What f does is then read by nobody any more.
func (c *Client) await(ctx context.Context, f func()) error {
	if ctx.Done() == nil {
		f()
		return nil
	}
	select {
	case c.waiting <- struct{}{}:
	case <-ctx.Done():
		return &unsentError{ctx.Err()}
	}
	done := make(chan struct{})
	go func() {
		defer func() { <-c.waiting }()
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

// maxWaiting is how many commands of a Client may wait for a server whose callers
// can give up, and may have given up.
const maxWaiting = 1024

// noticeFailure has a cluster's client look at who is master of what, if a
// connection failed: by itself it asks the dead for long.
func (c *Client) noticeFailure(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	var reply redis.Error
	if errors.As(err, &reply) && !strings.HasPrefix(err.Error(), "CLUSTERDOWN") {
		return false
	}
	if cluster, ok := c.redis.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
	for _, sh := range c.shards {
		sh.clock.Store(nil) // there may be another server, with another clock
	}
	return true
}

func isNoScript(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") }

var (
	errLate      = fmt.Errorf("redistimer: not carried out in time: %w", context.DeadlineExceeded)
	errDisturbed = errors.New("the connection failed")
)

// explain makes the errors of the scripts those of this package.
func (c *Client) explain(err error) error {
	if err == nil {
		return nil
	}
	var unsent *unsentError
	if errors.As(err, &unsent) {
		err = unsent.err
	}
	if _, has, ok := strings.Cut(err.Error(), "TICKLESS schema "); ok {
		has, _, _ = strings.Cut(has, "@")
		return fmt.Errorf("%w: version and shards of %q are %s, this client's %s", ErrSchema, c.config.name, has, c.schema)
	}
	if err.Error() == "TICKLESS late" {
		return errLate
	}
	return fmt.Errorf("redistimer: %w", err)
}

// one runs a script in one shard.
func (c *Client) one(ctx context.Context, s *script, sh *shard, args ...any) (any, error) {
	v, err := c.run(ctx, call{script: s, shard: sh, args: args})[0].Result()
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
