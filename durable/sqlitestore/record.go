package sqlitestore

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// more has the fields that only few tasks use.
type more struct {
	Crashes   int             `json:"crashes,omitempty"`
	Runs      int             `json:"runs,omitempty"`
	Stopping  bool            `json:"stopping,omitempty"`
	Following bool            `json:"following,omitempty"`
	Alone     bool            `json:"alone,omitempty"`
	Next      store.Time      `json:"next,omitempty"`
	NextTask  *store.Task     `json:"next_task,omitempty"`
	Failures  []store.Failure `json:"failures,omitempty"`
}

// encodeMore returns the column more, or nil if all its fields are zero.
func encodeMore(t *machine.Task) []byte {
	if t.Crashes == 0 && t.Runs == 0 && !t.Stopping && !t.Following && !t.Alone && len(t.Failures) == 0 {
		return nil
	}
	b, err := json.Marshal(more{t.Crashes, t.Runs, t.Stopping, t.Following, t.Alone, t.Next, t.NextTask, t.Failures})
	must(err)
	return b
}

// args returns the columns of a task.
func args(t *machine.Task) []any {
	m := encodeMore(t)
	return []any{t.ID, int64(t.State), int64(t.At), t.Handler, t.Schedule, t.Record, int64(t.Due), int64(t.Attempts),
		t.Token, int64(t.Lease), text(m), sum(t, m)}
}

// text returns the value of a column that may be NULL.
func text(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

var table = crc32.MakeTable(crc32.Castagnoli)

// sum returns the checksum of a row. If a query has used an index, State and At come
// from the index, so that the checksum detects an index entry that points to another
// task's row.
func sum(t *machine.Task, more []byte) int64 {
	var b []byte
	for _, s := range []string{t.ID, t.Handler, t.Schedule} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	for _, n := range []int64{int64(t.State), int64(t.At), int64(t.Due), int64(t.Attempts), t.Token, int64(t.Lease), int64(len(more))} {
		b = binary.AppendVarint(b, n)
	}
	c := crc32.Update(0, table, b)
	c = crc32.Update(c, table, more)
	return int64(crc32.Update(c, table, t.Record))
}

// scan reads a row. The error wraps ErrDamaged if the row is damaged; the task then has
// its id only.
func scan(rows interface{ Scan(...any) error }, t *machine.Task) error {
	var rest []byte
	var n int64
	err := rows.Scan(&t.ID, &t.State, &t.At, &t.Handler, &t.Schedule, &t.Record, &t.Due, &t.Attempts, &t.Token, &t.Lease, &rest, &n)
	switch {
	case err != nil && t.ID == "":
		return err
	case err != nil: // another column has a value of another type
		return fmt.Errorf("%w: task %.80q: %w", ErrDamaged, t.ID, err)
	}
	if len(t.Record) == 0 {
		t.Record = nil
	}
	var x more
	if rest != nil {
		err = json.Unmarshal(rest, &x)
	}
	if err != nil || n != sum(t, rest) {
		return fmt.Errorf("%w: task %.80q has a wrong checksum", ErrDamaged, t.ID)
	}
	t.Crashes, t.Runs = x.Crashes, x.Runs
	t.Stopping, t.Following, t.Alone, t.Next, t.NextTask, t.Failures = x.Stopping, x.Following, x.Alone, x.Next, x.NextTask, x.Failures
	return nil
}
