package durable

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// FuzzRun reads the record of a finished run, as a store may have kept or imported it.
func FuzzRun(f *testing.F) {
	f.Add([]byte("d0000000000000017"), "failed")
	f.Add([]byte("d00000000000000171234"), "")
	f.Add([]byte("x00000000000000170000000000000001result"), "\xff")
	f.Fuzz(func(t *testing.T, record []byte, text string) {
		e := store.Entry{Task: store.Task{ID: store.RunID("k", 3), Handler: "h", Record: record}, State: store.Past, Failures: []store.Failure{{Text: text}}}
		info, err := infoOf(&e)
		require.NoError(t, err)
		done, ended, result, ok := store.ParseRun(record)
		require.Equal(t, ok, info.Run != nil)
		if ok {
			require.Equal(t, done, info.Run.Done)
			require.LessOrEqual(t, len(info.Run.Result), len(result))
			if ended >= 0 {
				again, endedAgain, resultAgain, _ := store.ParseRun(store.RunRecord(done, ended, result))
				require.Equal(t, []any{done, ended, string(result)}, []any{again, endedAgain, string(resultAgain)})
			}
		}
	})
}

// FuzzCursor parses a Cursor that a caller sends back.
func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add(string(cursorOf(store.Cursor{State: store.Dead, At: 5, ID: "k\x00"})))
	f.Add("MSAyIGs")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := Cursor(s).parse()
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			require.Less(t, len(err.Error()), 300)
			return
		}
		require.LessOrEqual(t, c.State, store.Past)
		if c != (store.Cursor{}) {
			again, err := cursorOf(c).parse()
			require.NoError(t, err)
			require.Equal(t, c, again)
		}
	})
}

// FuzzNames checks that names and error texts stay text.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "k", "k\xff", "a\nb", "\u0085", "ä", "k\x00h"} {
		f.Add(s)
	}
	c := New(memstore.New())
	f.Fuzz(func(t *testing.T, s string) {
		for _, task := range []Task{{Key: s, Handler: "h"}, {Key: "k", Handler: s}, {Key: "k", Handler: "h", Cron: "* * * * *", Zone: s}, {Key: "k", Handler: "h", Cron: s}} {
			_, err := c.Schedule(t.Context(), task, After(0))
			if err != nil {
				require.ErrorIs(t, err, ErrInvalid)
				require.Less(t, len(err.Error()), 600)
			} else {
				require.True(t, task.Key == "" || store.IsName(task.Key))
				require.True(t, store.IsName(task.Handler))
			}
		}
	})
}
