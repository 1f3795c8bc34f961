package sqlitestore

import (
	"database/sql"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// fakeRow is a row with any values.
type fakeRow []any

func (r fakeRow) Scan(to ...any) error {
	for i := range to {
		if n, ok := to[i].(sql.Scanner); ok {
			if err := n.Scan(r[i]); err != nil {
				return err
			}
			continue
		}
		p := reflect.ValueOf(to[i]).Elem()
		v := reflect.ValueOf(r[i])
		if !v.IsValid() {
			continue
		}
		if !v.CanConvert(p.Type()) {
			return fmt.Errorf("column %d is %T", i, r[i])
		}
		p.Set(v.Convert(p.Type()))
	}
	return nil
}

// FuzzRow decodes any rows of the table of tasks. A row with the right checksum becomes a
// task with the same row; any other is damaged.
func FuzzRow(f *testing.F) {
	f.Add("k", uint8(1), int64(5), "h", "", []byte("record"), int64(4), int64(0), []byte(nil), uint32(0))
	f.Add("k\xff", uint8(2), int64(5), "h", "s", []byte{}, int64(4), int64(7), []byte(`{"crashes":2,"following":true,"next_task":{"ID":"k\ufffd"},"failures":[{"Attempt":1}]}`), uint32(0))
	f.Add("k", uint8(4), int64(5), "h", "", []byte("d1"), int64(4), int64(0), []byte(`{"failures":7}`), uint32(1))
	f.Fuzz(func(t *testing.T, id string, state uint8, at int64, handler, schedule string, record []byte, due, token int64, more []byte, damage uint32) {
		want := machine.Task{Entry: store.Entry{Task: store.Task{ID: id, Handler: handler, Schedule: schedule, Record: record}, State: store.State(state), At: store.Time(at), Due: store.Time(due), Token: token, Worker: max(0, token%9), Version: max(0, token%7)}}
		if len(more) == 0 {
			more = nil
		}
		row := fakeRow{id, int64(state), at, handler, schedule, record, due, int64(0), token, int64(0), more, rowChecksum(&want, more) + int64(damage), nullableNumber(want.Worker), nullableNumber(want.Version), nullableName(want.Group)}
		var got machine.Task
		if err := scanRow(row, &got); err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		require.Zero(t, damage)
		require.Equal(t, id, got.ID)
		var again machine.Task
		require.NoError(t, scanRow(fakeRow(columnValues(&got)), &again))
		if len(got.Failures) == 0 {
			got.Failures = nil
		}
		if got.EncodeMore(got.Suspect) == nil {
			got.Next, got.NextTask = 0, nil
		}
		require.Equal(t, got, again)
	})
}
