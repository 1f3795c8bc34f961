package record

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
)

// A line that is decoded and encoded again stays the same.
func FuzzImport(f *testing.F) {
	for _, s := range []string{
		`{"id":"a","handler":"h","state":"pending","at":"2026-01-02T04:04:05Z","due":"2026-01-02T03:04:05.000001Z"}`,
		`{"id":{"base64":"/w=="},"handler":"h","schedule":"s","record":"AQ==","state":"running","at":"2026-01-02T04:04:05Z","due":"2026-01-02T03:04:05Z","following":true,"next":"2026-01-02T05:04:05+01:00","next_task":{"id":{"base64":"/w=="},"handler":"other"}}`,
		`{"id":"k\u0000","handler":"h","state":"dead","at":"2026-01-02T04:04:05Z","due":"2026-01-02T03:04:05Z","runs":3,"failures":[{"attempt":1,"time":"2026-01-02T03:04:05.5Z","text":"t"}]}`,
		`{"tasks":3,"crc32c":"00000000","end":true}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, sum, err := unmarshalLine(b)
		if err != nil {
			return
		}
		if sum != nil {
			again, err := marshalLine(sum)
			require.NoError(t, err)
			_, got, err := unmarshalLine(again)
			require.NoError(t, err)
			require.Equal(t, sum, got)
			return
		}
		c := store.Command{Op: store.Import, Items: []store.Item{{ID: e.ID, Entry: e}}}
		if c.Check(&store.Stamp{Sender: "s", Number: 1}) != nil {
			return
		}
		again, err := marshalLine(fileEntryOf(e))
		require.NoError(t, err)
		got, _, err := unmarshalLine(again)
		require.NoError(t, err)
		if !e.Following {
			e.Next = 0
		}
		if len(e.Record) == 0 {
			e.Record = nil
		}
		if e.NextTask != nil && len(e.NextTask.Record) == 0 {
			e.NextTask.Record = nil
		}
		require.Equal(t, e, got)
	})
}

// FuzzEscapedName checks that the name in a file is text.
func FuzzEscapedName(f *testing.F) {
	for _, s := range []string{"", "k", "k\xff", "a\nb", "\u0085", "ä", "k\x00h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if store.IsName(s) {
			require.Equal(t, s, escapedName(s))
		} else {
			require.True(t, s == "" || len(escapedName(s)) > store.MaxID || store.IsName(escapedName(s)), "%q", escapedName(s))
		}
	})
}
