package pgstore

import (
	"encoding/json"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

func encodeJSON(x any) string {
	b, err := json.Marshal(x)
	must(err)
	return string(b)
}

// encodeID returns an id as the tables have it. PostgreSQL's text cannot contain NUL, which ids
// of dead letters and of kept runs do. No key contains U+0001, so it stands for NUL and keeps the
// order. What is not UTF-8 becomes U+0002, which no row contains.
func encodeID(id string) string { return strings.ToValidUTF8(idEncoder.Replace(id), "\x02") }

var idEncoder = strings.NewReplacer("\x00", "\x01", "\x01", "\x02")

func decodeID(id string) string { return strings.ReplaceAll(id, "\x01", "\x00") }

const (
	taskColumns = `id, state, at, handler, schedule, record, due, attempts, token, lease, more, suspect, worker, version, grp, ctid::text`
	// nextTask are columns of a row that tells only a time.
	nextTask = `'', 0::int2, at, '', '', NULL, 0, 0, 0, 0, NULL, false, 0, 0, '', ''`
)

// scanTask reads a row that begins with before and continues with taskColumns or nextTask.
func scanTask(rows pgx.Rows, before ...any) *cachedTask {
	x := &cachedTask{hasRow: true}
	t := &x.Task
	var more []byte
	must(rows.Scan(append(before, &t.ID, (*uint8)(&t.State), (*int64)(&t.At), &t.Handler, &t.Schedule, &t.Record,
		(*int64)(&t.Due), &t.Attempts, &t.Token, (*int64)(&t.Lease), &more, &t.Suspect, &t.Worker, &t.Version, &t.Group, &x.ctid)...))
	t.ID = decodeID(t.ID)
	if len(t.Record) == 0 {
		t.Record = nil
	}
	must(t.DecodeMore(more))
	if t.State == pendingPaused || t.State == parked {
		t.Parked = t.State == parked
		t.State = store.Pending
	}
	x.storedTask = t.Task
	return x
}

// Values of the column state of pending tasks that wait because they are paused, or that are
// parked. In a list, suspects stands for pending suspects, whose column state is 1.
const (
	suspects      = 5
	pendingPaused = 6
	parked        = 9
)

func columnState(t *machine.Task) int16 {
	switch {
	case t.Waits():
		return pendingPaused
	case t.Parked:
		return parked
	}
	return int16(t.State)
}

// column returns a column of several tasks, to write them with one statement.
func column[T any](tasks []*cachedTask, value func(x *cachedTask) T) []T {
	values := make([]T, len(tasks))
	for i, x := range tasks {
		values[i] = value(x)
	}
	return values
}

// insertedColumns returns the parameters of insertTasks.
func insertedColumns(tasks []*cachedTask) []any {
	return append([]any{
		column(tasks, func(x *cachedTask) string { return encodeID(x.ID) }),
		column(tasks, func(x *cachedTask) string { return x.Handler }),
		column(tasks, func(x *cachedTask) string { return x.Schedule }),
		column(tasks, func(x *cachedTask) []byte { return x.Record }),
		column(tasks, func(x *cachedTask) string { return x.Group }),
	}, changedColumns(tasks)...)
}

// movedColumns returns the parameters of moveTasks.
func movedColumns(tasks []*cachedTask) []any {
	return append([]any{
		column(tasks, func(x *cachedTask) string { return encodeID(x.ID) }),
		column(tasks, func(x *cachedTask) *string { return notEmpty(x.ctid) }),
	}, changedColumns(tasks)...)
}

func changedColumns(tasks []*cachedTask) []any {
	return []any{
		column(tasks, func(x *cachedTask) int16 { return columnState(&x.Task) }),
		column(tasks, func(x *cachedTask) int64 { return int64(x.At) }),
		column(tasks, func(x *cachedTask) int64 { return int64(x.Due) }),
		column(tasks, func(x *cachedTask) int32 { return int32(x.Attempts) }),
		column(tasks, func(x *cachedTask) int64 { return x.Token }),
		column(tasks, func(x *cachedTask) int64 { return int64(x.Lease) }),
		column(tasks, func(x *cachedTask) *string { return notEmpty(string(x.EncodeMore(false))) }),
		column(tasks, func(x *cachedTask) bool { return x.Suspect }),
		column(tasks, func(x *cachedTask) int64 { return x.Worker }),
		column(tasks, func(x *cachedTask) int64 { return x.Version }),
	}
}

// notEmpty returns nil, which is NULL, for an empty text.
func notEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
