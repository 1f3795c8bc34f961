package diskstore_test

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
)

// When its context ends while a copy is made there is none, and the place is free again.
func TestCheckpoint_Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan struct{})
	var once sync.Once
	mem := vfs.NewMem()
	s := open(t, "store", diskstore.WithFS(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasPrefix(op.Path, "copy/") && op.Kind == errorfs.OpCreate {
			once.Do(func() {
				cancel()
				<-returned
			})
		}
		return nil
	}))))
	put(t, s, "k", durable.After(time.Hour))
	require.ErrorIs(t, s.Checkpoint(ctx, "copy"), context.Canceled)
	require.ErrorIs(t, s.Checkpoint(t.Context(), "copy"), fs.ErrExist, "the first is under way")
	close(returned)
	require.Eventually(t, func() bool {
		_, err := mem.Stat("copy")
		return err != nil
	}, time.Minute, time.Millisecond)
	require.NoError(t, s.Checkpoint(t.Context(), "copy"))
	require.NoError(t, s.Close())
	v, err := diskstore.Check(t.Context(), "copy", silent, diskstore.WithFS(mem))
	require.NoError(t, err)
	require.EqualValues(t, 1, v.Pending)
}
