package record

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
)

func TestDecode_OfAnotherVersion(t *testing.T) {
	x := store.Task{ID: "k", Handler: "h", Record: (&Task{Body: []byte("body")}).Encode(nil)}
	x.Record[0] = lastVersion + 1
	_, _, err := Decode(&x)
	require.ErrorIs(t, err, ErrNewer)
	x.Record[0] = 0
	_, _, err = Decode(&x)
	require.ErrorIs(t, err, ErrDamaged)
	x.Record[0] = firstVersion
	x.Record[headSize-1] |= 1 << 7 // a field of a later version
	_, _, err = Decode(&x)
	require.ErrorIs(t, err, ErrDamaged)
	for n := range headSize {
		_, _, err = Decode(&store.Task{ID: "k", Record: x.Record[:n]})
		require.Error(t, err)
	}
}
