package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/pgstore/pgtest"
	"github.com/tickless/tickless/durable/store"
)

func schedule(t *testing.T, c *durable.Client, key string) error {
	t.Helper()
	x := item(key, durable.After(time.Hour))
	_, err := c.Schedule(t.Context(), x.Task, x.When)
	return err
}

// Acknowledged commands survive a crash of the server, and the Store goes on when it is back.
func TestFaults_ServerCrashes(t *testing.T) {
	server := pgtest.Start(t)
	pool := newPool(t, server.URL("postgres"))
	_, err := Migrate(t.Context(), pool)
	require.NoError(t, err)
	s := New(pool)
	defer s.Close()
	c := durable.New(s)
	var handled sync.Map
	w := durable.NewWorker(c)
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		handled.Store(d.Key, true)
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	var acknowledged []string
	for crash := range 3 {
		down := make(chan struct{})
		go func() {
			time.Sleep(100 * time.Millisecond)
			server.Kill()
			close(down)
		}()
		for i := 0; ; i++ {
			key := fmt.Sprintf("k%d-%d", crash, i)
			if _, err := c.Schedule(t.Context(), item(key, durable.After(0)).Task, durable.After(0)); err != nil {
				break
			}
			acknowledged = append(acknowledged, key)
		}
		<-down
		server.Restart()
	}
	for _, key := range acknowledged {
		for {
			if _, ok := handled.Load(key); ok {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	require.NoError(t, w.Shutdown(t.Context()))
	require.NoError(t, <-ended)
}

// A proxy stands between a Store and its server.
type proxy struct {
	net.Listener
	target  string
	cutting atomic.Pointer[string] // cut the connection that sends this text
	swallow atomic.Bool            // do not pass the text on
}

func newProxy(t *testing.T, port int) (*proxy, *pgxpool.Pool) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{Listener: l, target: fmt.Sprintf("127.0.0.1:%d", port)}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p, newPool(t, fmt.Sprintf("postgres://tickless@%s/postgres?sslmode=disable&default_query_exec_mode=exec", l.Addr()))
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	up, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer up.Close()
	go func() {
		_, _ = io.Copy(c, up)
		c.Close()
	}()
	buffer := make([]byte, 1<<16)
	for {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		cut := p.cutting.Load()
		if cut != nil && strings.Contains(string(buffer[:n]), *cut) && p.cutting.CompareAndSwap(cut, nil) {
			c.Close() // no answer reaches the Store
			if !p.swallow.Load() {
				_, _ = up.Write(buffer[:n])
			}
			return
		}
		if _, err := up.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// If the connection ends in the middle of COMMIT, nobody knows whether the command was
// carried out. Sending it again tells, and it has one effect.
func TestFaults_CutInCommit(t *testing.T) {
	for _, reaches := range []bool{true, false} {
		_, schema := newSchema(t)
		p, pool := newProxy(t, sharedServer(t).Port)
		s := New(pool, schema)
		defer s.Close()
		c := durable.New(s)
		require.NoError(t, schedule(t, c, "first"))
		commit := "COMMIT\x00" // not READ COMMITTED
		p.swallow.Store(!reaches)
		p.cutting.Store(&commit)
		err := schedule(t, c, "k")
		var unknown *durable.UnknownError
		require.ErrorAs(t, err, &unknown)
		require.NotErrorIs(t, err, store.ErrNotDone)
		out, err := unknown.Again(t.Context())
		require.NoError(t, err)
		require.Equal(t, []durable.Outcome{durable.Created}, out)
		st, err := c.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, st.Pending)

		// Before the commit, the transaction is repeated, and the caller does not notice.
		lock := "pg_advisory_xact_lock"
		p.cutting.Store(&lock)
		require.NoError(t, schedule(t, c, "again"))
	}
}

// Serialization failures, deadlocks and lock timeouts are repeated.
func TestFaults_TransientErrors(t *testing.T) {
	s, c := newStore(t)
	require.NoError(t, schedule(t, c, "first"))
	_, err := s.pool.Exec(t.Context(), s.sql(`CREATE SEQUENCE tickless.failures;
		CREATE FUNCTION tickless.fail() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE n int := nextval('tickless.failures'); BEGIN
			IF n % 4 = 1 THEN RAISE EXCEPTION 'test' USING ERRCODE = '40001'; END IF;
			IF n % 4 = 2 THEN RAISE EXCEPTION 'test' USING ERRCODE = '40P01'; END IF;
			IF n % 4 = 3 THEN RAISE EXCEPTION 'test' USING ERRCODE = '55P03'; END IF;
			RETURN new; END $$;
		CREATE TRIGGER fail BEFORE INSERT ON tickless.tasks FOR EACH ROW EXECUTE FUNCTION tickless.fail()`), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	for i := range 5 {
		require.NoError(t, schedule(t, c, fmt.Sprint("k", i)))
	}
}

// Of the calls in one transaction, only the faulty one fails. A full disk is ErrFull, and
// other errors of the server change nothing.
func TestFaults_OtherErrors(t *testing.T) {
	s, c := newStore(t)
	require.NoError(t, schedule(t, c, "first"))
	_, err := s.pool.Exec(t.Context(), s.sql(`CREATE FUNCTION tickless.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF new.id = 'full' THEN RAISE EXCEPTION 'test' USING ERRCODE = '53100'; END IF;
			IF new.id = 'readonly' THEN RAISE EXCEPTION 'test' USING ERRCODE = '25006'; END IF;
			IF new.id LIKE 'bad%' THEN RAISE EXCEPTION 'test' USING ERRCODE = '22021'; END IF;
			RETURN new; END $$;
		CREATE TRIGGER fail BEFORE INSERT ON tickless.tasks FOR EACH ROW EXECUTE FUNCTION tickless.fail()`), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	require.ErrorIs(t, schedule(t, c, "full"), store.ErrFull)
	require.ErrorIs(t, schedule(t, c, "readonly"), ErrReadOnly)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			key := fmt.Sprint("good", i)
			if i%8 == 0 {
				key = fmt.Sprint("bad", i)
			}
			if err := schedule(t, c, key); (err != nil) != (i%8 == 0) || err != nil && !errors.Is(err, store.ErrNotDone) {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	all.Wait()
	st, err := c.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1+56, st.Pending)
}

// A process that hangs in a transaction does not hold the shard for ever.
func TestFaults_HolderHangs(t *testing.T) {
	s, c := newStore(t)
	require.NoError(t, schedule(t, c, "first"))
	holder, err := s.pool.Begin(t.Context())
	require.NoError(t, err)
	defer holder.Rollback(context.Background())
	_, err = holder.Exec(t.Context(), s.sql(strings.ReplaceAll(lockShard, "'10s'", "'300ms'")), 0)
	require.NoError(t, err)
	require.NoError(t, schedule(t, c, "k"), "the server must end the holder's transaction")
}

// Without a free connection of the server, a read-only server, or a statement timeout, calls
// return an error that says so. The Store goes on when the reason has gone.
func TestFaults_ServerRefuses(t *testing.T) {
	server := pgtest.Start(t, "fsync=off", "max_connections=8", "superuser_reserved_connections=0")
	pool := newPool(t, server.URL("postgres"))
	_, err := Migrate(t.Context(), pool)
	require.NoError(t, err)
	pool.Close()
	url := func(settings string) string { return server.URL("postgres") + settings }
	open := func(settings string) (*Store, *durable.Client) {
		s := New(newPool(t, url(settings)))
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s, durable.New(s)
	}
	var others []*pgx.Conn
	for range 8 {
		o, err := pgx.Connect(t.Context(), url(""))
		if err != nil {
			break
		}
		others = append(others, o)
	}
	_, c := open("")
	err = schedule(t, c, "k")
	require.ErrorIs(t, err, store.ErrNotDone)
	require.ErrorContains(t, err, "53300")
	for _, o := range others {
		require.NoError(t, o.Close(t.Context()))
	}
	require.Eventually(t, func() bool { return schedule(t, c, "k") == nil }, time.Minute, 10*time.Millisecond)

	for settings, warning := range map[string]string{
		"": "fsync is off", "&default_transaction_read_only=on": "read-only", "&synchronous_commit=off": "synchronous_commit is off",
	} {
		_, c := open(settings)
		h, err := c.Check(t.Context())
		require.NoError(t, err)
		require.Contains(t, strings.Join(h.Warnings, "; "), warning)
	}

	_, slow := open("&statement_timeout=1500")
	holder, err := pgx.Connect(t.Context(), url(""))
	require.NoError(t, err)
	defer holder.Close(context.Background())
	_, err = holder.Exec(t.Context(), "BEGIN")
	require.NoError(t, err)
	_, err = holder.Exec(t.Context(), lockShard, 0)
	require.NoError(t, err)
	err = schedule(t, slow, "slow")
	require.ErrorIs(t, err, store.ErrNotDone)
	require.ErrorContains(t, err, "57014")
	_, err = holder.Exec(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, schedule(t, slow, "slow"))
}

// An old snapshot keeps all dead rows. Commands and claims read as many pages as without it.
func TestFaults_OldSnapshot(t *testing.T) {
	s, c := newStore(t)
	hold := func() pgx.Tx {
		tx, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), s.sql(`SELECT count(*) FROM tickless.tasks`))
		require.NoError(t, err)
		return tx
	}
	defer func(tx pgx.Tx) { _ = tx.Rollback(context.Background()) }(hold())
	const n = 3000
	blocks := func(statement string, args ...any) (total int64) {
		rows, err := s.pool.Query(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) "+s.sql(statement), append([]any{pgx.QueryExecModeExec}, args...)...)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		for _, line := range lines {
			if _, hit, ok := strings.Cut(line, "Buffers: shared hit="); ok {
				var k int64
				_, _ = fmt.Sscan(hit, &k)
				total = max(total, k)
			}
		}
		return total
	}
	keys := runWorker(t, c)
	var items []durable.Item
	for i := range n {
		items = append(items, item(fmt.Sprint("k", i), durable.After(0)))
	}
	_, err := c.ScheduleBatch(t.Context(), items)
	require.NoError(t, err)
	for range n {
		<-keys
	}
	for i := range 200 {
		require.NoError(t, schedule(t, c, fmt.Sprint("later", i)))
	}
	require.Less(t, blocks(findDocuments, 0, []string{""}, "0"), int64(40))
	x := s.shards[0]
	done := make(chan memory, 1)
	require.NoError(t, x.calls.Do(t.Context(), &call{Run: func(*index) error { done <- x.memory; return nil }}))
	require.NoError(t, s.Close())
	from := x.memory.from[kind{handler: "h"}]
	require.NotZero(t, from, "the claims remember no lower bound")
}
