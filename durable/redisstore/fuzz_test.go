package redisstore

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
)

// FuzzAnswers decodes any answers of scripts, as a damaged or hostile server may give.
// Decoding returns an error or valid values.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{13, 0, 1, 'a', 1, 'l', 0, 0, 0, 0}, []byte("1 2 3 4 c 5 1:h"), []byte("0000000000000001400\x031:hx"))
	f.Add([]byte{2, 1, 'o', '2'}, []byte("1 7 3:abc2 8 0:"), []byte{})
	f.Add([]byte("\x02\x02\x02"), []byte("0 0 0 0 - - "), []byte("0000000000000001499999:"))
	s := New(redis.NewClient(&redis.Options{}))
	f.Cleanup(func() { s.Close(); s.client.Close() })
	f.Fuzz(func(t *testing.T, answer, text, record []byte) {
		v, _ := decodeAnswer(answer, 3)
		round := &store.Round{Lease: time.Second, Reports: make([]store.Report, len(answer)%4), Extend: make([]store.Lease, len(text)%3), Claim: store.Claim{Asked: true, Max: 10}}
		if a, err := s.parseRoundAnswer(s.shards[0], round, v); err == nil {
			for _, r := range a.Receipts {
				require.LessOrEqual(t, r, store.Overtaken)
			}
			for _, x := range a.Extensions {
				require.LessOrEqual(t, x, store.HeldStopping)
			}
		}
		batch := []*pendingCommand{{itemCount: len(answer) % 5}, {itemCount: 1}}
		setResults(batch, v, nil)
		for _, x := range batch {
			require.True(t, x.err != nil || len(x.outcomes) == x.itemCount)
		}
		_, _ = parseLimits(v)
		require.Less(t, len(answerError(v).Error()), 300)

		for state := store.Pending; state <= store.Past; state++ {
			e := parseEntry("k", state, 1, []string{string(record), string(text), string(text), string(record)})
			require.Equal(t, "k", e.ID)
		}
		failures := parseFailures(string(text))
		require.Equal(t, failures, parseFailures(encodeFailures(failures)))
		x := parseRecord("k", string(record))
		if x.Handler != "" {
			require.Equal(t, x, parseRecord("k", encodeRecord(&x, string(record[:dueSize]))+"0000000000000002"))
		}
	})
}

// decodeAnswer returns an answer made of the bytes, and the remaining bytes.
func decodeAnswer(b []byte, depth int) (any, []byte) {
	if len(b) == 0 {
		return nil, nil
	}
	kind, n := b[0]%4, int(b[0]/4)
	b = b[1:]
	switch {
	case kind == 0:
		var word [8]byte
		k := copy(word[:], b)
		return int64(binary.LittleEndian.Uint64(word[:])), b[k:]
	case kind == 1:
		n = min(n, len(b))
		return string(b[:n]), b[n:]
	case kind == 2 && depth > 0:
		list := make([]any, n)
		for i := range list {
			list[i], b = decodeAnswer(b, depth-1)
		}
		return list, b
	}
	return nil, b
}
