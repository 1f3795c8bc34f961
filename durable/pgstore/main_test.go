package pgstore

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/pgstore/pgtest"
)

// server is the server of all tests that do not break theirs. It loses nothing when a
// process is killed, so it does not sync the disk.
var server struct {
	sync.Mutex
	*pgtest.Server
	cleanups []func()
}

// A mainTB lets a server live as long as the tests.
type mainTB struct{ testing.TB }

func (mainTB) Cleanup(f func()) { server.cleanups = append(server.cleanups, f) }

func TestMain(m *testing.M) {
	code := m.Run()
	for i := range server.cleanups {
		server.cleanups[len(server.cleanups)-1-i]()
	}
	os.Exit(code)
}

func sharedServer(tb testing.TB) *pgtest.Server {
	tb.Helper()
	server.Lock()
	defer server.Unlock()
	if server.Server == nil {
		server.Server = pgtest.Start(mainTB{tb}, "fsync=off", "max_connections=300")
	}
	return server.Server
}

func newPool(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	require.NoError(tb, err)
	tb.Cleanup(pool.Close)
	return pool
}

var schemaNumber atomic.Int64

// newSchema returns a pool on the shared server, and an option for a schema of its own
// with the Store's tables.
func newSchema(tb testing.TB, opts ...Option) (*pgxpool.Pool, Option) {
	tb.Helper()
	pool := newPool(tb, sharedServer(tb).URL("postgres"))
	schema := WithSchema(fmt.Sprint("test", schemaNumber.Add(1)))
	_, err := Migrate(context.Background(), pool, append(opts, schema)...)
	require.NoError(tb, err)
	return pool, schema
}
