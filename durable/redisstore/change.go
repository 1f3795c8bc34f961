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
	x := &change{shard: s.shards[shard], sender: senderField(&st), op: c.Op, items: len(c.Items)}
	x.put(&st, &c)
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
	// kind is the op of one that schedules one task, whose arguments are these few; else
	// empty. Then until is its deadline. Pointers make no copies of strings.
	kind               string
	until              store.Time
	number, id, record string
	few                [3]any
	op                 store.Op
	items              int
	bytes              int
	out                []store.Outcome
	err                error
	done               chan struct{} // closed when out and err are set

	// Guarded by the combiner: it is sent, or will not be, since its caller has
	// given up.
	sent, gone bool
}

// hungry reports whether a full server refuses the change.
func (x *change) hungry() bool { return x.op == store.Schedule || x.op == store.Import }

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

// put sets what the script is told of a command: see scripts/change.lua.
func (x *change) put(st *store.Stamp, c *store.Command) {
	number := strconv.FormatInt(st.Number, 10)
	if c.Op == store.Schedule && len(c.Items) == 1 {
		x.kind, x.until = keeps[c.Keep], st.Until
		if st.Until != 0 {
			number += " " + untilArg(st.Until)
		}
		x.number, x.id, x.record = number, c.Items[0].ID, shortRecord(&c.Items[0])
		x.few = [3]any{&x.number, &x.id, &x.record}
		x.args, x.bytes = x.few[:], len(x.record)
		return
	}
	op := keeps[c.Keep]
	if c.Op != store.Schedule {
		op = ops[c.Op]
	}
	args := make([]any, 0, 4+3*len(c.Items))
	args = append(args, number, untilArg(st.Until), op, strconv.Itoa(len(c.Items)))
	var texts [][3]string
	if c.Op == store.Schedule {
		texts = make([][3]string, len(c.Items))
	}
	for i := range c.Items {
		item := &c.Items[i]
		switch c.Op {
		case store.Schedule:
			at, r := whenAndRecord(item)
			x.bytes += len(r)
			texts[i] = [3]string{item.ID, at, r}
			args = append(args, &texts[i][0], &texts[i][1], &texts[i][2])
		case store.Reschedule, store.Requeue:
			args = append(args, item.ID, whenArg(item.When), item.Generation)
		case store.Cancel, store.Purge:
			args = append(args, item.ID)
		case store.Import:
			var n int
			args, n = importArgs(args, item.Entry)
			x.bytes += n
		}
	}
	x.args = args
}

// shortRecord is a record with a When of 16 or 17 bytes in front.
func shortRecord(x *store.Item) string {
	micros, fromNow := x.When.Parts()
	if fromNow {
		return record(&x.Task, "+", micros)
	}
	return record(&x.Task, "", micros)
}

// whenAndRecord are the time of a task and its record, which has none in front if the time
// counts from now.
func whenAndRecord(x *store.Item) (when, r string) {
	micros, fromNow := x.When.Parts()
	if fromNow {
		return whenArg(x.When), record(&x.Task, "", -1)
	}
	r = record(&x.Task, "", micros)
	return r[:dueSize], r
}

// long returns the arguments of a change that is sent together with others of another
// kind.
func (x *change) long() []any {
	if x.kind == "" {
		return x.args
	}
	number, until, _ := strings.Cut(x.number, " ")
	at, r := "", x.record
	if r[0] == '+' {
		at, r = r[:dueSize+1], r[dueSize+1:]
	} else {
		at = r[:dueSize]
	}
	return []any{number, until, x.kind, "1", x.id, at, r}
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
	r := record(t, "", -1)
	return append(args, e.ID, into, at, r, attempts, crashes, due, number(e.Runs), noted), len(r) + len(noted)
}

// callOf makes one call of changes for one shard.
func (s *Store) callOf(some []*change) call {
	kind, until := kindOf(some)
	n := 3 + len(some)
	for _, x := range some {
		n += len(x.args)
	}
	args := append(make([]any, 0, n), len(some))
	for _, x := range some {
		args = append(args, &x.sender)
	}
	args = append(args, kind)
	if kind != "" {
		args = append(args, untilArg(until))
	}
	for _, x := range some {
		if kind == "" {
			args = append(args, x.long()...)
		} else {
			args = append(args, x.args...)
		}
	}
	return call{script: s.scripts.change, shard: some[0].shard, args: args}
}

// kindOf returns the op of changes that each schedule one task, or nothing, and the
// earliest of their deadlines.
func kindOf(some []*change) (kind string, until store.Time) {
	kind = some[0].kind
	for _, x := range some {
		if x.kind != kind {
			return "", 0
		}
		if x.until != 0 && (until == 0 || x.until < until) {
			until = x.until
		}
	}
	return kind, until
}

// answered takes the answer to a call of changes.
func answered(some []*change, cmd *redis.Cmd) {
	v, err := cmd.Result()
	same, all := v.(string)
	list, ok := v.([]any)
	if err == nil && !all && (!ok || len(list) != len(some)) {
		err = unexpected(v)
	}
	for i, x := range some {
		if err != nil {
			x.err = explain(err)
			continue
		}
		answer := same
		if !all {
			answer, _ = list[i].(string)
		}
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
