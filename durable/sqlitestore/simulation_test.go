package sqlitestore_test

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/internal/simulation"
	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

func TestSimulation_Seeds(t *testing.T) {
	dir, paths := t.TempDir(), make(map[store.Store]string)
	open := func(path string, c clock.Clock) (store.Store, error) {
		st, err := sqlitestore.Open(path, sqlitestore.WithClock(c), sqlitestore.WithSyncInterval(time.Minute), sqlitestore.WithOneProcess())
		paths[st] = path
		return st, err
	}
	simulation.Test(t, simulation.Opener{
		Open: func(c clock.Clock, _ int) (store.Store, error) {
			return open(filepath.Join(dir, strconv.Itoa(len(paths))), c)
		},
		Reopen: func(st store.Store, c clock.Clock) (store.Store, error) {
			if err := st.(*sqlitestore.Store).Close(); err != nil {
				return nil, err
			}
			return open(paths[st], c)
		},
		Close:     func(st store.Store) { _ = st.(*sqlitestore.Store).Close() },
		MaxShards: 1, CompareEvery: 100,
	}, 3)
}
