package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// Change carries out a command. Commands that wait at the same time share a script.
func (s *Store) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if err := c.Check(&st); err != nil {
		return nil, err
	}
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	if c.Op == store.Schedule || c.Op == store.Import || c.Op == store.Sync {
		if err := s.refuseEviction(ctx); err != nil {
			return nil, err
		}
	}
	x := &pendingCommand{shard: s.shards[shard], senderField: senderField(&st), op: c.Op, itemCount: len(c.Items)}
	x.encodeArgs(&st, &c)
	return s.shards[shard].combiner.submit(ctx, x)
}

// A pendingCommand waits in the queue to be sent, or waits for its answer.
type pendingCommand struct {
	shard       *shard
	senderField string // name of the sender's field in the hash meta
	args        []any  // the arguments for the script
	op          store.Op
	itemCount   int // number of the command's items
	recordBytes int // total size of the records
	outcomes    []store.Outcome
	err         error
	done        chan struct{} // closed when outcomes and err are set
}

// batchClass returns Schedule, Import, Sync, or 0 for any other command. A batch has one class,
// so that a full server can refuse Schedule without refusing Cancel, for example.
func (x *pendingCommand) batchClass() store.Op {
	switch x.op {
	case store.Schedule, store.Import, store.Sync:
		return x.op
	}
	return 0
}

// senderField returns the field of the hash meta with the sender's latest command.
func senderField(s *store.Stamp) string { return "s:" + s.Sender }

func deadlineArg(t store.Time) string {
	if t == 0 {
		return ""
	}
	return strconv.FormatInt(int64(t), 10)
}

// scheduleOpNames and opNames are the names of the operations in scripts/change.lua.
var scheduleOpNames = [...]string{store.KeepNone: "s", store.KeepAny: "sn", store.KeepEarlier: "se", store.KeepLater: "sl", store.KeepSame: "sm"}

var opNames = map[store.Op]string{
	store.Reschedule: "r", store.Cancel: "c", store.Requeue: "q", store.Purge: "x", store.Import: "i", store.SetLimit: "l",
	store.PauseTask: "P", store.ResumeTask: "R", store.PauseHandler: "h", store.ResumeHandler: "u", store.Pause: "p", store.Resume: "g", store.Sync: "y",
}

// encodeArgs sets the arguments for scripts/change.lua. Pointers to strings avoid an
// allocation for each string.
func (x *pendingCommand) encodeArgs(st *store.Stamp, c *store.Command) {
	op := opNames[c.Op]
	if c.Op == store.Schedule {
		op = scheduleOpNames[c.Keep]
		if slices.ContainsFunc(c.Items, hasUniqueKey) {
			op += "U"
		}
	}
	var header string
	args := append(make([]any, 0, 1+3*len(c.Items)), &header)
	idsAndRecords := make([][2]string, len(c.Items))
	for i := range c.Items {
		item := &c.Items[i]
		switch c.Op {
		case store.Schedule, store.Sync:
			if c.Op == store.Sync && i == 0 {
				args = append(args, item.ID, fmt.Sprintf("%019d", item.Version))
				continue
			}
			when := whenArg(item.When)
			switch {
			case item.Anew:
				when = "#" + when
			case item.Next:
				when = "=" + when
			}
			if item.Paused || item.IfVersion != 0 {
				flags := "~"
				if item.Paused {
					flags += "p"
				}
				when = flags + versionArg(item) + ":" + when
			}
			idsAndRecords[i] = [2]string{item.ID, encodeRecord(&item.Task, when)}
			x.recordBytes += len(idsAndRecords[i][1])
			args = append(args, &idsAndRecords[i][0], &idsAndRecords[i][1])
		case store.Reschedule, store.Requeue:
			args = append(args, item.ID, versionArg(item), whenArg(item.When), item.Generation)
		case store.PauseHandler:
			args = append(args, item.ID, item.Note)
		case store.Cancel, store.Purge, store.PauseTask, store.ResumeTask:
			args = append(args, item.ID, versionArg(item))
		case store.ResumeHandler:
			args = append(args, item.ID)
		case store.SetLimit:
			args = append(args, item.ID)
			for _, l := range []store.Limit{*item.Limit, item.Limit.OfGroup()} {
				every, burst := l.Pace()
				args = append(args, strconv.Itoa(l.Concurrency), strconv.FormatInt(int64(every), 10),
					strconv.FormatInt(burst, 10), strconv.FormatFloat(l.Rate, 'g', -1, 64))
			}
		case store.Import:
			var n int
			args, n = appendImportArgs(args, item.Entry)
			x.recordBytes += n
		}
	}
	x.args = args
	argsPerItem := 0
	if len(c.Items) > 0 {
		argsPerItem = (len(args) - 1) / len(c.Items)
	}
	if header = strconv.FormatInt(st.Number, 10); op == "s" && len(c.Items) == 1 && st.Until == 0 {
		return
	}
	header = fmt.Sprintf("%d %s %s %d %d", st.Number, deadlineArg(st.Until), op, len(c.Items), argsPerItem)
}

// versionArg returns an item's IfVersion, or an empty text.
func versionArg(x *store.Item) string {
	if x.IfVersion == 0 {
		return ""
	}
	return strconv.FormatInt(x.IfVersion, 10)
}

func hasUniqueKey(x store.Item) bool {
	k, _ := x.Task.Keeps()
	return k.Unique > 0
}

// appendImportArgs appends the arguments for an imported entry. It also returns the
// bytes of the record and failures.
func appendImportArgs(args []any, e *store.Entry) ([]any, int) {
	formatMicros := func(t store.Time) string { return strconv.FormatInt(int64(t), 10) }
	x := e.WithoutAttempt(0)
	place, at, next, flags := "due", formatMicros(x.At), "", ""
	switch {
	case e.State >= store.Dead:
		place = e.State.String()
	case e.State == store.Running && x.At == 0:
		at = "+0"
	}
	if x.Following {
		next = formatMicros(x.Next)
	}
	if x.Paused {
		flags = "p"
	}
	if x.Once {
		flags = "po"
	}
	failureText := encodeFailures(x.Failures)
	r := encodeRecord(&x.Task, "")
	return append(args, x.ID, place, at, r, strconv.Itoa(x.Attempts), strconv.Itoa(x.Crashes), formatMicros(x.Due), strconv.Itoa(x.Runs), failureText, next, flags), len(r) + len(failureText)
}

// batchCall returns one call of scripts/change.lua for several commands to a shard.
func (s *Store) batchCall(batch []*pendingCommand) scriptCall {
	x := scriptCall{script: s.scripts.change, shard: batch[0].shard, metaFields: make([]any, 0, len(batch)+1)}
	for _, c := range batch {
		x.metaFields = append(x.metaFields, &c.senderField)
		x.args = append(x.args, c.args...)
	}
	x.metaFields = append(x.metaFields, "fence")
	return x
}

// setResults sets the result of each command from the script's answer. If all commands
// have the same answer, the script returns only one.
func setResults(batch []*pendingCommand, v any, err error) {
	sharedAnswer, isShared := v.(string)
	list, _ := v.([]any)
	if err == nil && !isShared && len(list) != len(batch) {
		err = answerError(v)
	}
	for i, x := range batch {
		if err != nil {
			x.err = toStoreError(err)
			continue
		}
		answer := sharedAnswer
		if !isShared {
			answer, _ = list[i].(string)
		}
		switch {
		case answer == "stale":
			x.err = store.ErrStale
		case answer == "late":
			x.err = store.ErrLate
		case len(answer) != 1+x.itemCount || answer[0] != 'o' || strings.Trim(answer[1:], "123456789:") != "":
			x.err = answerError(answer)
		default:
			x.err, x.outcomes = nil, parseDigits[store.Outcome](answer[1:])
		}
	}
}
