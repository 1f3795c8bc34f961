package sqlitestore

import (
	"database/sql"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
	"github.com/tickless/tickless/durable/store/storetest"
)

// TestHostileFile opens a file whose rows have right checksums and hostile contents, as
// somebody who can write the file may make it.
func TestHostileFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	exec := func(query string, args ...any) {
		_, err := db.Exec(query, args...)
		require.NoError(t, err)
	}
	n := 0
	put := func(id string, state store.State, at, due store.Time, record []byte, more string) {
		n++
		x := machine.Task{Entry: store.Entry{Task: store.Task{ID: id, Handler: "h", Record: record}, State: state, At: at, Due: due}}
		if state == store.Running {
			x.Token, x.Lease = 1<<40, 1
		}
		m := []byte(more)
		if more == "" {
			m = nil
		}
		values := columnValues(&x)
		values[len(values)-5], values[len(values)-4] = nullableText(m), rowChecksum(&x, m)
		exec(insertTask, values...)
	}
	for i, record := range storetest.HostileRecords() {
		put(fmt.Sprint("k", i), store.Pending, 1, 1, record, "")
		put(fmt.Sprint("dead", i), store.Dead, 1, 1, record, "")
		put(store.RunID(fmt.Sprint("k", i), i), store.Past, math.MaxInt64, 1, record, "")
	}
	for i, more := range []string{"{}", "null", "[]", "0", `""`, "{", "\x00", `{"crashes":-1,"runs":-1}`, `{"crashes":9223372036854775807}`, `{"next":-1,"following":true}`, `{"next":9223372036854775807,"following":true,"stopping":true}`,
		`{"following":true,"next_task":{"ID":"other","Handler":"","Schedule":"\u0000","Record":"AA=="}}`, `{"failures":[{},{"Attempt":-1,"Time":-1,"Text":"\u0000\ud800"}]}`, `{"failures":[null]}`, `{"failures":7}`, `{"suspect":true,"crashes":1000}`} {
		for _, state := range []store.State{store.Pending, store.Running, store.Dead, store.Past} {
			for _, at := range []store.Time{math.MinInt64, -1, 0, 1, math.MaxInt64} {
				put(fmt.Sprintf("more%d/%d/%d", i, state, at), state, at, -at, []byte("\x01genera\x00"), more)
			}
		}
	}
	for _, id := range []string{"\xff", "odd\xff\x00", "odd\xff\x0017", "\x00", "\x00h", "a\nb", "k\x00hh", "k\x00r-1"} {
		for i, state := range []store.State{store.Pending, store.Dead, store.Past} {
			put(id+string(rune('0'+i)), state, 1, 1, []byte("d1"), "")
		}
	}
	for _, record := range []string{"d0000000000000017", "d00000000000000171", "x-000000000000001", "d9999999999999999", "d0000000000000017000000000000001"} {
		put(store.RunID("short"+record, 1), store.Past, math.MaxInt64, 1, []byte(record), "")
	}
	for i, text := range []string{"{}", "null", `{"Number":-1,"Claim":{"Handlers":null}}`, `{"Claim":{"Handlers":["\u0000"],"Schedules":["h"]},"Last":9223372036854775807,"After":-9223372036854775808}`, "[]", "x"} {
		r := smallRow{name: fmt.Sprint("s", i), text: text, second: 1}
		exec(`INSERT INTO tickless_senders (name, sender, seen, worker, sum) VALUES (?, ?, ?, ?, ?)`, r.name, r.text, r.first, r.second, r.checksum())
	}
	for i, text := range []string{"{}", `{"Concurrency":-5,"Running":-9223372036854775808}`, `{"Rate":1e308,"Full":9223372036854775807}`, `{"Rate":-1}`, "[]", "x"} {
		r := smallRow{name: fmt.Sprint("limited", i), text: text}
		exec(`INSERT INTO tickless_limits (handler, used, sum) VALUES (?, ?, ?)`, r.name, r.text, r.checksum())
	}
	r := smallRow{text: fmt.Sprintf(`{"Pending":%d,"Running":-7,"Limits":6,"Fence":5}`, n), first: schemaVersion}
	exec(`UPDATE tickless_numbers SET numbers = ?, wakes = 0, sum = ?`, r.text, r.checksum())
	require.NoError(t, db.Close())

	s, err = Open(path, WithSyncInterval(time.Minute))
	require.NoError(t, err)
	defer s.Close()
	storetest.RunHostile(t, s)
}
