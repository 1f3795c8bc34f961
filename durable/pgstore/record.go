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
func encodeID(id string) string {
	return strings.ToValidUTF8(strings.NewReplacer("\x00", "\x01", "\x01", "\x02").Replace(id), "\x02")
}

func decodeID(id string) string { return strings.ReplaceAll(id, "\x01", "\x00") }

const taskColumns = `t.id, t.state, t.at, t.handler, t.schedule, t.record, t.due, t.attempts, t.token, t.lease, t.more, t.suspect, t.worker, t.version, t.grp, t.ctid::text`

// scanTask reads a row that begins with before and continues with taskColumns.
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

// taskRows are the columns of several tasks, to write them with one statement.
type taskRows struct {
	ids, handlers, schedules, groups []string
	ctids                            []*string
	records                          [][]byte
	more                             []*string
	states                           []int16
	ats, dues                        []int64
	attempts                         []int32
	tokens, leases, workers          []int64
	versions                         []int64
	suspects                         []bool
}

func (r *taskRows) add(x *cachedTask) {
	t := &x.Task
	var ctid *string
	if x.ctid != "" {
		ctid = &x.ctid
	}
	r.ctids = append(r.ctids, ctid)
	r.ids, r.states, r.ats = append(r.ids, encodeID(t.ID)), append(r.states, columnState(t)), append(r.ats, int64(t.At))
	r.handlers, r.schedules, r.records = append(r.handlers, t.Handler), append(r.schedules, t.Schedule), append(r.records, t.Record)
	r.dues, r.attempts, r.tokens = append(r.dues, int64(t.Due)), append(r.attempts, int32(t.Attempts)), append(r.tokens, t.Token)
	var more *string
	if m := t.EncodeMore(false); m != nil {
		text := string(m)
		more = &text
	}
	r.leases, r.more = append(r.leases, int64(t.Lease)), append(r.more, more)
	r.suspects, r.workers, r.groups = append(r.suspects, t.Suspect), append(r.workers, t.Worker), append(r.groups, t.Group)
	r.versions = append(r.versions, t.Version)
}
