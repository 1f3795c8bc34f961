package pgstore

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/pgstore/pgtest"
	"github.com/tickless/tickless/durable/store"
)

// If the tables' disk is full, commands have no effect. They go on when there is space again.
func TestFaults_FullDisk(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "fsync=off")
	dir := filepath.Join(filepath.Dir(server.Dir), "small")
	require.NoError(t, os.Mkdir(dir, 0o700))
	info, err := os.Stat(server.Dir)
	require.NoError(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=16m,mode=0700,uid=%d,gid=%d", owner.Uid, owner.Gid)); err != nil {
		t.Skip("only root can mount a small disk: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	_, err = newPool(t, server.URL("postgres")).Exec(t.Context(), "CREATE TABLESPACE small LOCATION '"+dir+"'")
	require.NoError(t, err)
	pool := newPool(t, server.URL("postgres")+"&default_tablespace=small")
	_, err = Migrate(t.Context(), pool)
	require.NoError(t, err)
	otherFile := filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(otherFile, make([]byte, 4<<20), 0o600))
	s := New(pool)
	defer s.Close()
	c := durable.New(s)
	put := func(i int) error {
		_, err := c.Schedule(t.Context(), durable.Task{Key: fmt.Sprint("k", i), Handler: "h", Body: make([]byte, 60<<10)}, durable.After(time.Hour))
		return err
	}
	pending := func() int64 {
		st, err := c.Stats(t.Context())
		require.NoError(t, err)
		return st.Pending
	}
	n := 0
	for ; err == nil; n++ {
		err = put(n)
	}
	require.ErrorIs(t, err, store.ErrFull)
	require.ErrorIs(t, err, store.ErrNotDone)
	require.EqualValues(t, n-1, pending())
	require.NoError(t, os.Remove(otherFile))
	require.NoError(t, put(n-1))
	require.EqualValues(t, n, pending())
}
