package diskstore

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// closings is a file system that counts how often each file that it makes is closed.
type closings struct {
	vfs.FS
	of map[string]*atomic.Int32
}

func (c closings) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	c.of[name] = new(atomic.Int32)
	return countedFile{f, c.of[name]}, err
}

type countedFile struct {
	vfs.File
	closed *atomic.Int32
}

func (f countedFile) Close() error {
	f.closed.Add(1)
	runtime.Gosched() // whoever else is about to close it comes now
	return nil
}

// A table that Pebble closes while those that are being made are dropped is closed once,
// by one of them.
func TestDrop_WhileTablesAreClosed(t *testing.T) {
	const closers, each = 4, 20
	for range 50 {
		fs := closings{vfs.NewMem(), make(map[string]*atomic.Int32)}
		require.NoError(t, fs.MkdirAll("store", 0o700))
		g := &gate{FS: fs, dir: "store"}
		var files []vfs.File
		for i := range closers * each {
			f, err := g.Create(fmt.Sprintf("store/%06d.sst", i), vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			files = append(files, f)
		}
		g.shut.Store(true)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range closers {
			all.Go(func() {
				<-begin
				for _, f := range files[i*each : (i+1)*each] {
					_ = f.Close()
				}
			})
		}
		all.Go(func() {
			<-begin
			g.drop()
		})
		close(begin)
		all.Wait()
		for name, closed := range fs.of {
			require.EqualValues(t, 1, closed.Load(), name)
		}
		require.Empty(t, g.making.files)
	}
}
