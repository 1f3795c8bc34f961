package diskstore_test

import (
	"context"
	"crypto/rand"
	"fmt"
	rng "math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
)

// disk returns a disk of a size: what is there may not grow beyond that. Of tables the
// store itself sees to it.
func disk(files vfs.FS, size uint64) *filledDisk {
	d := &filledDisk{files, size}
	d.FS = errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFileWrite || strings.HasSuffix(op.Path, ".sst") {
			return nil
		}
		if u, err := (&filledDisk{files, size}).GetDiskUsage("store"); err == nil && u.AvailBytes == 0 {
			return syscall.ENOSPC
		}
		return nil
	}))
	return d
}

// roomOf returns how many bytes the files of a store have.
func roomOf(t *testing.T, files vfs.FS) uint64 {
	u, err := (&filledDisk{files, 1 << 40}).GetDiskUsage("store")
	require.NoError(t, err)
	return u.UsedBytes
}

// idsOf returns the tasks that there are.
func idsOf(t *testing.T, s *diskstore.Store) map[string]bool {
	ids := make(map[string]bool)
	for c, more := store.Cursor(""), true; more; more = c != "" {
		p, err := s.List(t.Context(), 0, store.Filter{}, c, 100)
		require.NoError(t, err)
		for _, e := range p.Entries {
			ids[e.ID] = true
		}
		c = p.Next
	}
	return ids
}

// scheduleNoise schedules a task that cannot be made smaller.
func scheduleNoise(s *diskstore.Store, number int, id string, bytes int) error {
	record := make([]byte, bytes)
	_, _ = rand.Read(record)
	c := store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, When: store.After(time.Millisecond), Task: store.Task{ID: id, Handler: "h", Record: record}}}}
	_, err := s.Change(context.Background(), 0, store.Stamp{Sender: "s", Number: int64(number)}, c)
	return err
}

// A store that was closed when the disk was full can be opened again, on that disk too,
// as often as one likes. No Open takes room that the next one does not have, and all
// tasks can be read, claimed and ended.
func TestOpen_ClosedOnAFullDisk(t *testing.T) {
	begins(t)
	sizes := []uint64{6, 8, 10, 12, 14, 16}
	if testing.Short() {
		sizes = sizes[1:2]
	}
	opened, tasks := 0, 0
	for _, size := range sizes {
		size <<= 20
		files := vfs.NewMem()
		opts := func(size uint64) []diskstore.Option {
			return []diskstore.Option{diskstore.WithFS(disk(files, size)), diskstore.WithShards(1), diskstore.WithPause(50 * time.Millisecond)}
		}
		s := open(t, "store", opts(size)...)
		ids := make(map[string]bool)
		for number, refused := 1, 0; refused < 20; number++ {
			id := fmt.Sprint(number)
			if err := scheduleNoise(s, number, id, 8000); err == nil {
				ids[id] = true
			} else {
				require.ErrorIs(t, err, store.ErrFull)
				refused++
			}
		}
		require.NoError(t, s.Close())
		require.Greater(t, len(ids), 100)
		tasks += len(ids)
		for i, more := range []uint64{0, 0, 0, 0, 1 << 20, 1 << 20, 0} {
			s, err := diskstore.Open("store", append(opts(size+more), silent)...)
			require.NoError(t, err, "the %d. time, %d bytes more", i+1, more)
			require.Equal(t, ids, idsOf(t, s))
			require.NoError(t, s.Close())
			require.LessOrEqual(t, roomOf(t, files), size+more)
			opened++
		}
		s = open(t, "store", opts(size)...)
		var holds []store.Report
		for n := int64(1); len(ids) > 0 || len(holds) > 0; n++ {
			a, err := s.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: n}, store.Round{Lease: time.Minute, MaxCrashes: 3, Reports: holds,
				Claim: store.Claim{Asked: true, Max: 50, Handlers: []string{"h"}}})
			require.NoError(t, err)
			holds = nil
			for _, x := range a.Tasks {
				delete(ids, x.ID)
				holds = append(holds, store.Report{Hold: store.Hold{ID: x.ID, Token: x.Token}, Due: x.Due, End: store.Done})
			}
		}
		require.Empty(t, idsOf(t, s))
		require.NoError(t, s.Close())
	}
	note(t, "%d small disks were filled with %d tasks, and the stores closed: %d times they were opened again, on the full disk or with 1 MB more, and all tasks could be read, and in the end be run", len(sizes), tasks, opened)
}

// What an Open has written that found no room, and what a crash has left of tables, is
// gone when the next one needs the room.
func TestOpen_TablesThatNobodyNeeds(t *testing.T) {
	begins(t)
	const tasks, record = 600, 8000
	files := vfs.NewCrashableMem()
	s := open(t, "store", diskstore.WithFS(files), diskstore.WithShards(1))
	for n := range tasks {
		require.NoError(t, scheduleNoise(s, n+1, fmt.Sprint(n), record))
	}
	crashed := files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng.New(rng.NewPCG(1, 2))})
	require.NoError(t, s.Close())

	// There is room for half of what is in the log.
	log := roomOf(t, crashed)
	require.Greater(t, log, uint64(tasks*record))
	most := uint64(0)
	for i := range 4 {
		_, err := diskstore.Open("store", diskstore.WithFS(disk(crashed, log+tasks*record/2)), silent)
		require.ErrorIs(t, err, store.ErrFull)
		require.ErrorContains(t, err, "no room to write what is in the log to tables")
		if i == 0 {
			most = roomOf(t, crashed) + 64<<10 // for the small files that each leaves
		}
		require.LessOrEqual(t, roomOf(t, crashed), most)
	}
	// A crash has left a table, and a part of one, that fill the disk.
	for _, name := range []string{"000998.sst", "000999.sst"} {
		f, err := crashed.Create("store/"+name, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write(make([]byte, tasks*record/2))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	s, err := diskstore.Open("store", diskstore.WithFS(disk(crashed, log+tasks*record*5/4)), silent)
	require.NoError(t, err)
	require.Len(t, idsOf(t, s), tasks)
	require.NoError(t, s.Close())
	require.Less(t, roomOf(t, crashed), log+tasks*record*5/4)
	note(t, "a log for whose tables there was no room: no Open that said so took what the next one had, and what a crash had left of tables made room for the next one, which had all of %d tasks", tasks)
}
