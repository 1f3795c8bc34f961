package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// Change carries out a command, together with others that are sent at the same time.
func (s *Store) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if err := c.Check(&st); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	x := &change{shard: s.shards[shard], sender: senderField(&st), op: c.Op, items: len(c.Items)}
	x.put(&st, &c)
	return s.shards[shard].combiner.change(ctx, x)
}

// A change is a command that waits to be sent or to be answered.
type change struct {
	shard  *shard
	sender string
	args   []any // the arguments for the script
	op     store.Op
	items  int
	bytes  int
	out    []store.Outcome
	err    error
	done   chan struct{} // closed when out and err are set
}

// class returns Schedule or Import for these commands, which a full server refuses, and 0
// for all others. Commands of different classes are not sent together.
func (x *change) class() store.Op {
	if x.op == store.Schedule || x.op == store.Import {
		return x.op
	}
	return 0
}

// senderField returns a sender's field in the meta hash.
func senderField(s *store.Stamp) string { return "s:" + s.Sender }

func untilArg(t store.Time) string {
	if t == 0 {
		return ""
	}
	return strconv.FormatInt(int64(t), 10)
}

var keeps = [...]string{store.KeepNone: "s", store.KeepAny: "sn", store.KeepEarlier: "se", store.KeepLater: "sl", store.KeepSame: "sm"}

var ops = map[store.Op]string{
	store.Reschedule: "r", store.Cancel: "c", store.Requeue: "q", store.Purge: "x", store.Import: "i", store.SetLimit: "l", store.Pause: "p", store.Resume: "g",
}

// put sets the script's arguments for a command: see scripts/change.lua. Pointers avoid
// copies of strings.
func (x *change) put(st *store.Stamp, c *store.Command) {
	op := ops[c.Op]
	if c.Op == store.Schedule {
		op = keeps[c.Keep]
		if slices.ContainsFunc(c.Items, isUnique) {
			op += "U"
		}
	}
	var head string
	args := append(make([]any, 0, 1+3*len(c.Items)), &head)
	texts := make([][2]string, len(c.Items))
	for i := range c.Items {
		item := &c.Items[i]
		switch c.Op {
		case store.Schedule:
			texts[i] = [2]string{item.ID, record(&item.Task, whenArg(item.When))}
			x.bytes += len(texts[i][1])
			args = append(args, &texts[i][0], &texts[i][1])
		case store.Reschedule, store.Requeue:
			args = append(args, item.ID, whenArg(item.When), item.Generation)
		case store.Cancel, store.Purge:
			args = append(args, item.ID)
		case store.SetLimit:
			every, burst := item.Limit.Pace()
			args = append(args, item.ID, strconv.Itoa(item.Limit.Concurrency), strconv.FormatInt(int64(every), 10),
				strconv.FormatInt(burst, 10), strconv.FormatFloat(item.Limit.Rate, 'g', -1, 64))
		case store.Import:
			var n int
			args, n = importArgs(args, item.Entry)
			x.bytes += n
		}
	}
	x.args = args
	width := 0
	if len(c.Items) > 0 {
		width = (len(args) - 1) / len(c.Items)
	}
	if head = strconv.FormatInt(st.Number, 10); op == "s" && len(c.Items) == 1 && st.Until == 0 {
		return
	}
	head = fmt.Sprintf("%d %s %s %d %d", st.Number, untilArg(st.Until), op, len(c.Items), width)
}

func isUnique(x store.Item) bool {
	k, _ := x.Task.Keeps()
	return k.Unique > 0
}

func importArgs(args []any, e *store.Entry) ([]any, int) {
	number := func(n int) string { return strconv.Itoa(n) }
	micros := func(t store.Time) string { return strconv.FormatInt(int64(t), 10) }
	into, at, noted := "due", micros(e.At), failures(e.Failures)
	t := &e.Task
	due, attempts, crashes := micros(e.Due), number(e.Attempts), number(e.Crashes)
	switch {
	case e.State >= store.Dead:
		into = e.State.String()
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

// callOf returns one call for several changes of a shard.
func (s *Store) callOf(some []*change) call {
	x := call{script: s.scripts.change, shard: some[0].shard, fields: make([]any, 0, len(some))}
	for _, c := range some {
		x.fields = append(x.fields, &c.sender)
		x.args = append(x.args, c.args...)
	}
	return x
}

// answered distributes the answer to a call among its changes.
func answered(some []*change, v any, err error) {
	same, all := v.(string)
	list, _ := v.([]any)
	if err == nil && !all && len(list) != len(some) {
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
