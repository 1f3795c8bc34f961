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
	dir, files := t.TempDir(), 0
	var path string
	open := func(c clock.Clock) (store.Store, error) {
		return sqlitestore.Open(path, sqlitestore.WithClock(c), sqlitestore.WithSyncInterval(time.Minute), sqlitestore.WithOneProcess())
	}
	simulation.Test(t, simulation.Opener{
		Open: func(c clock.Clock, _ int) (store.Store, error) {
			files++
			path = filepath.Join(dir, strconv.Itoa(files))
			return open(c)
		},
		Reopen: func(st store.Store, c clock.Clock) (store.Store, error) {
			if err := st.(*sqlitestore.Store).Close(); err != nil {
				return nil, err
			}
			return open(c)
		},
		Close:     func(st store.Store) { _ = st.(*sqlitestore.Store).Close() },
		MaxShards: 1, CompareEvery: 100,
	}, 3)
}
