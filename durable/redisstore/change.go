package redisstore

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/store"
)

// Change carries out a command, together with others that come at the same time.
func (s *Store) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if err := c.Check(&st); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	x := &change{shard: s.shards[shard], sender: senderField(&st), items: len(c.Items)}
	x.hungry = c.Op == store.Schedule || c.Op == store.Import
	x.args, x.bytes = changeArgs(&st, &c)
	if s.config.replicas > 0 {
		s.changeReplicated(ctx, x)
		return x.out, x.err
	}
	return s.combiners[shard%len(s.combiners)].change(ctx, x)
}

// A change is a command for a shard, on its way.
type change struct {
	shard  *shard
	sender string
	args   []any // what the script is told of it
	items  int
	bytes  int
	hungry bool // a full server refuses it
	out    []store.Outcome
	err    error
	done   chan struct{} // closed when out and err are set

	// Guarded by the combiner: it is sent, or will not be, since its caller has
	// given up.
	sent, gone bool
}

// senderField is the field of meta that a sender has.
func senderField(s *store.Stamp) string { return "s:" + s.Sender }

func untilArg(t store.Time) string {
	if t == 0 {
		return ""
	}
	return strconv.FormatInt(int64(t), 10)
}

// whenArg writes a When as the scripts take it.
func whenArg(w store.When) string {
	micros, fromNow := w.Parts()
	if fromNow {
		return "+" + strconv.FormatInt(micros, 10)
	}
	return digits16(micros)
}

var keeps = [...]string{store.KeepNone: "s", store.KeepAny: "sn", store.KeepEarlier: "se", store.KeepLater: "sl"}

var ops = map[store.Op]string{
	store.Reschedule: "r", store.Cancel: "c", store.Requeue: "q", store.Purge: "x", store.Import: "i", store.Pause: "p", store.Resume: "g",
}

// changeArgs are those of one command: see scripts/change.lua.
func changeArgs(st *store.Stamp, c *store.Command) (args []any, bytes int) {
	op := keeps[c.Keep]
	if c.Op != store.Schedule {
		op = ops[c.Op]
	}
	args = make([]any, 0, 4+3*len(c.Items))
	args = append(args, strconv.FormatInt(st.Number, 10), untilArg(st.Until), op, strconv.Itoa(len(c.Items)))
	for i := range c.Items {
		x := &c.Items[i]
		switch c.Op {
		case store.Schedule:
			at := whenArg(x.When)
			due := at
			if at[0] == '+' {
				due = ""
			}
			r := record(&x.Task, due)
			bytes += len(r)
			args = append(args, x.ID, at, r)
		case store.Reschedule, store.Requeue:
			args = append(args, x.ID, whenArg(x.When))
		case store.Cancel, store.Purge:
			args = append(args, x.ID)
		case store.Import:
			var n int
			args, n = importArgs(args, x.Entry)
			bytes += n
		}
	}
	return args, bytes
}

func importArgs(args []any, e *store.Entry) ([]any, int) {
	number := func(n int) string { return strconv.Itoa(n) }
	micros := func(t store.Time) string { return strconv.FormatInt(int64(t), 10) }
	into, at, noted := "due", micros(e.At), failures(e.Failures)
	t := &e.Task
	due, attempts, crashes := micros(e.Due), number(e.Attempts), number(e.Crashes)
	switch {
	case e.State == store.Dead:
		into = "dead"
	case e.Following:
		at, due, attempts, crashes, noted = micros(e.Next), "", "0", "0", ""
		if e.NextTask != nil {
			t = e.NextTask
		}
	case e.State == store.Running:
		at = "+0"
	}
	r := record(t, "")
	return append(args, e.ID, into, at, r, attempts, crashes, due, number(e.Runs), noted), len(r) + len(noted)
}

// callOf makes one call of changes for one shard.
func (s *Store) callOf(some []*change) call {
	n := 0
	for _, x := range some {
		n += 1 + len(x.args)
	}
	args := append(make([]any, 0, 1+n), len(some))
	for _, x := range some {
		args = append(args, x.sender)
	}
	for _, x := range some {
		args = append(args, x.args...)
	}
	return call{script: s.scripts.change, shard: some[0].shard, args: args}
}

// answered takes the answer to a call of changes.
func answered(some []*change, cmd *redis.Cmd) {
	v, err := cmd.Result()
	list, ok := v.([]any)
	if err == nil && (!ok || len(list) != len(some)) {
		err = unexpected(v)
	}
	for i, x := range some {
		if err != nil {
			x.err = explain(err)
			continue
		}
		answer, _ := list[i].(string)
		switch {
		case answer == "stale":
			x.err = store.ErrStale
		case answer == "late":
			x.err = store.ErrLate
		case len(answer) != 1+x.items || answer[0] != 'o' || strings.Trim(answer[1:], "12345678") != "":
			x.err = unexpected(answer)
		default:
			x.err = nil
			if x.items > 0 {
				x.out = make([]store.Outcome, x.items)
			}
			for j := range x.out {
				x.out[j] = store.Outcome(answer[1+j] - '0')
			}
		}
	}
}

// changeReplicated carries out a change by itself, and waits for replicas.
func (s *Store) changeReplicated(ctx context.Context, x *change) {
	if err := s.know(ctx); err != nil {
		x.err = explain(err)
		return
	}
	some := []*change{x}
	cmds, short := s.replicated(ctx, []call{s.callOf(some)}, s.config.replicas, s.config.wait)
	if answered(some, cmds[0]); x.err == nil && short[0] != nil {
		x.err = short[0]
	}
}
