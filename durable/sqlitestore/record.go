package sqlitestore

import (
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// columnValues returns the columns of a task, in the order of the constant taskColumns.
func columnValues(t *machine.Task) []any {
	m := t.EncodeMore(t.Suspect)
	return []any{t.ID, columnState(t), int64(t.At), t.Handler, t.Schedule, t.Record, int64(t.Due), int64(t.Attempts),
		t.Token, int64(t.Lease), nullableText(m), rowChecksum(t, m), nullableNumber(t.Worker), nullableNumber(t.Version), nullableName(t.Group)}
}

// nullableNumber returns n, or NULL if n is 0.
func nullableNumber(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// nullableName returns a name, or NULL if it is empty.
func nullableName(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// nullableText returns b as a string, or NULL if b is nil.
func nullableText(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// rowChecksum returns a row's checksum. It also detects an index entry that points
// to the wrong row, because a query may take State and At from the index.
func rowChecksum(t *machine.Task, more []byte) int64 {
	var b []byte
	for _, s := range []string{t.ID, t.Handler, t.Schedule} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	for _, n := range []int64{columnState(t), int64(t.At), int64(t.Due), int64(t.Attempts), t.Token, int64(t.Lease), int64(len(more))} {
		b = binary.AppendVarint(b, n)
	}
	// Files of the version before have no such columns.
	if t.Worker != 0 || t.Version != 0 {
		b = binary.AppendVarint(b, t.Worker)
	}
	if t.Version != 0 {
		b = binary.AppendVarint(b, t.Version)
	}
	if t.Group != "" {
		b = append(binary.AppendUvarint(b, uint64(len(t.Group))), t.Group...)
	}
	c := crc32.Update(crc32.Checksum(b, crcTable), crcTable, more)
	return int64(crc32.Update(c, crcTable, t.Record))
}

// The column state of a pending task that is a suspect or parked is higher. Another value is
// that of pending tasks that wait because they are paused.
const (
	suspectState = 4
	parkedState  = 8

	pendingSuspect = int64(store.Pending) + suspectState
	pendingPaused  = 6
	parked         = int64(store.Pending) + parkedState
	parkedSuspect  = pendingSuspect + parkedState
)

func columnState(t *machine.Task) int64 {
	if t.Waits() {
		return pendingPaused
	}
	s := int64(t.State)
	if t.State == store.Pending && t.Suspect {
		s += suspectState
	}
	if t.Parked {
		s += parkedState
	}
	return s
}

// scanRow reads a row, whose first columns go to before. If the row is damaged, the error wraps ErrDamaged, and only the
// task's id is valid.
func scanRow(rows interface{ Scan(...any) error }, t *machine.Task, before ...any) error {
	var moreText []byte
	var n int64
	var worker, version sql.NullInt64
	var group sql.NullString
	err := rows.Scan(append(before, &t.ID, &t.State, &t.At, &t.Handler, &t.Schedule, &t.Record, &t.Due, &t.Attempts, &t.Token, &t.Lease, &moreText, &n, &worker, &version, &group)...)
	t.Worker, t.Version = worker.Int64, version.Int64
	switch {
	case err != nil && t.ID == "":
		return err
	case err != nil: // a column has a value of a wrong type
		return fmt.Errorf("%w: task %q: %w", ErrDamaged, store.Shorten(t.ID), err)
	}
	if len(t.Record) == 0 {
		t.Record = nil
	}
	err = t.DecodeMore(moreText)
	switch s := int64(t.State); s {
	case pendingSuspect, pendingPaused, parked, parkedSuspect:
		t.State, t.Parked = store.Pending, s >= parkedState
	}
	t.Group = group.String
	if err != nil || n != rowChecksum(t, moreText) {
		return fmt.Errorf("%w: task %q has a wrong checksum", ErrDamaged, store.Shorten(t.ID))
	}
	if t.Version == 0 && t.State != store.Past {
		t.Version = 1
	}
	if t.NextTask != nil {
		t.NextTask.ID = t.ID // JSON has changed an id that is not UTF-8
	}
	if !t.InRange() {
		return fmt.Errorf("%w: task %q has a number that is out of range", ErrDamaged, store.Shorten(t.ID))
	}
	return nil
}

// A smallRow is a row of a table other than tickless_tasks: a name, JSON and two numbers,
// with a checksum.
type smallRow struct {
	name, text    string
	first, second int64
	sum           sql.NullInt64
}

// checksum returns the checksum that the row should have.
func (r *smallRow) checksum() int64 {
	b := append(binary.AppendUvarint(nil, uint64(len(r.name))), r.name...)
	b = binary.AppendVarint(binary.AppendVarint(b, r.first), r.second)
	return int64(crc32.Update(crc32.Checksum(b, crcTable), crcTable, []byte(r.text)))
}

// scanSmallRow reads a row. A row with a value of a wrong type has no checksum.
func scanSmallRow(rows *sql.Rows) (r smallRow) {
	if rows.Scan(&r.name, &r.text, &r.first, &r.second, &r.sum) != nil {
		r.sum = sql.NullInt64{}
	}
	return r
}

// decode decodes the row's JSON into v. The error wraps ErrDamaged if the row is damaged.
func (r *smallRow) decode(v any) error {
	err := json.Unmarshal([]byte(r.text), v)
	if err == nil && (!r.sum.Valid || r.sum.Int64 != r.checksum()) {
		err = errors.New("wrong checksum")
	}
	if err != nil {
		return fmt.Errorf("%w: the row %q of a small table: %w", ErrDamaged, store.Shorten(r.name), err)
	}
	return nil
}
