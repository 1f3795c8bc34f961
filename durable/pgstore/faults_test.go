package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/pgstore/pgtest"
	"github.com/tickless/tickless/durable/store"
)

// What may happen to a Store, and the tests that show that it survives:
//
//	a worker is killed                 TestDeploy, TestServe_Killed of cmd/tickless; HolderHangs
//	the server is killed               ServerCrashes
//	failover to a standby that lags    Failover
//	a read-only server                 Failover, ServerRefuses
//	a cut in the middle of COMMIT      CutInCommit
//	serialization failures, deadlocks  TransientErrors
//	a full disk                        FullDisk, OtherErrors. If the log has no space, the server
//	                                   ends: ServerCrashes
//	idle_in_transaction_session_timeout, statement_timeout, max_connections
//	                                   HolderHangs, ServerRefuses
//	commits that are not safe          ServerRefuses
//	a role with the grants and no more TestGrants
//	another encoding, a collation      TestMigrate_Refuses, Collation
//	plans of empty tables              PlansOfEmptyTables
//	an old snapshot                    OldSnapshot; BenchmarkPostgresSnapshot of benchmarks/stores
//	clocks that are set                storetest
//	no LISTEN, no prepared statements  TestWait_OtherProcess, CutInCommit

func schedule(t *testing.T, c *durable.Client, key string) error {
	t.Helper()
	x := item(key, durable.After(time.Hour))
	_, err := c.Schedule(t.Context(), x.Task, x.When)
	return err
}

// Acknowledged commands survive a crash of the server, and the Store goes on when it is back.
func TestFaults_ServerCrashes(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "fsync=off") // the host survives
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
	kill := func(pid int) {
		p, err := os.FindProcess(pid)
		if assert.NoError(t, err) {
			assert.NoError(t, p.Kill())
		}
	}
	for crash, end := range map[string]func(){
		"shutdown": server.Kill,
		"kill -9": func() {
			kill(server.Pid())
			server.Kill()
		},
		"kill -9 of a connection's process": func() { // the server restarts itself
			var pid int
			if assert.NoError(t, pool.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid)) {
				kill(pid)
			}
		},
	} {
		down := make(chan struct{})
		go func() {
			defer close(down)
			time.Sleep(100 * time.Millisecond)
			end()
		}()
		for isUp := true; isUp; {
			select {
			case <-down:
				isUp = false
			default:
			}
			key := fmt.Sprint(crash, " ", len(acknowledged))
			if _, err := c.Schedule(t.Context(), item(key, durable.After(0)).Task, durable.After(0)); err == nil {
				acknowledged = append(acknowledged, key)
			}
		}
		if !strings.Contains(crash, "connection") {
			server.Restart()
		}
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
	t.Parallel()
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
	t.Parallel()
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
		if warning == "read-only" {
			require.ErrorIs(t, schedule(t, c, "refused"), ErrReadOnly)
		}
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
		tx, err := s.pool.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = tx.Rollback(context.Background()) }()
		_, err = tx.Exec(t.Context(), "SELECT "+fixPlans)
		require.NoError(t, err)
		rows, err := tx.Query(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) "+s.sql(statement), append([]any{pgx.QueryExecModeExec}, args...)...)
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
	var items []durable.Item
	sameTime := durable.At(time.Now().Add(-time.Minute))
	for i := range n {
		items = append(items, item(fmt.Sprint("k", i), sameTime))
	}
	_, err := c.ScheduleBatch(t.Context(), items)
	require.NoError(t, err)
	r := store.Round{Claim: store.Claim{Asked: true, Max: 100, Handlers: []string{"h"}}, Lease: time.Minute, MaxCrashes: 5}
	claims := int64(0)
	claimAndReport := func() {
		claims++
		a, err := s.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: claims, Until: store.Farthest}, r)
		require.NoError(t, err)
		require.Len(t, a.Tasks, r.Claim.Max)
		r.Reports = nil
		for _, x := range a.Tasks {
			r.Reports = append(r.Reports, store.Report{Lease: store.Lease{ID: x.ID, Token: x.Token}, End: store.Done, Due: x.Due})
		}
	}
	for range n / 100 / 2 {
		claimAndReport()
	}
	for i := range 200 {
		require.NoError(t, schedule(t, c, fmt.Sprint("later", i)))
	}
	// A command that guesses may be up to maxGuess ahead of the server's clock. The next one that
	// reads that clock finds that it goes back, so that the claims forget what they remember.
	claimAndReport()
	claimAndReport()
	require.Less(t, blocks(findDocuments, 0, []string{""}, "0"), int64(40))
	x := s.shards[0]
	done := make(chan memory, 1)
	require.NoError(t, x.calls.Call(t.Context(), &call{Run: func(*index) error { done <- x.memory; return nil }}))
	require.NoError(t, s.Close())
	from := x.memory.from[kind{handler: "h"}]
	require.NotEmpty(t, from.id, "the claims remember no lower bound among tasks of the same time")
	claim := func(from position) int64 {
		return blocks(dueTasks, 0, []string{"h"}, []string{""}, []int64{int64(from.at)}, []string{from.id}, 100, true)
	}
	require.Less(t, claim(from), int64(40))
	require.Greater(t, claim(position{}), int64(100), "the snapshot keeps no dead rows")
}

// A plan that was made while the tables were empty reads few pages when they are full: nothing
// has analyzed them since.
func TestFaults_PlansOfEmptyTables(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "fsync=off", "autovacuum=off")
	pool := newPool(t, server.URL("postgres"))
	_, err := Migrate(t.Context(), pool)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	require.NoError(t, err)
	defer conn.Close(context.Background())
	run := func(statement string) []string {
		results, err := conn.PgConn().Exec(t.Context(), statement).ReadAll()
		require.NoError(t, err, statement)
		var lines []string
		for _, row := range results[len(results)-1].Rows {
			lines = append(lines, string(row[0]))
		}
		return lines
	}
	run("SELECT " + strings.ReplaceAll(fixPlans, "true)", "false)"))
	statements := []struct{ name, types, text, args string }{
		{"find", "int, text[], bool[], text, bigint", findTasks, "0, '{k7}', '{f}', '', 0"},
		{"if_changed", "int, text[], bool[], text, bigint", findTasks, "0, '{k7}', '{t}', '', 0"},
		{"add", "int", addTasks, "0, 0, '', 0, 0, '', '0', '{k7}'" + strings.Repeat(", '{}'", 17) + ", 0, 0" + strings.Repeat(", '{}'", 4)},
		{"due", "int, text[], text[], int8[], text[], int8, bool", dueTasks, "0, '{h}', '{\"\"}', '{7}', '{k7}', 1, true"},
		{"leases", "int", expiredTasks, "0"},
		{"move", "int", moveTasks, "0, '{k7}', '{NULL}', '{1}', '{1}', '{1}', '{0}', '{0}', '{0}', '{NULL}', '{f}', '{0}', '{0}'"},
		{"remove", "int", deleteTasks, "0, '{k7}'"},
		{"versions", "int", writeVersions, "0, '{s7}', '{1}', 1000000, 0, '{}', '{}', '{}', '{}'"},
		{"documents", "int", findDocuments, "0, '{s7}', '0'"},
		{"find_groups", "int", findGroups, "0, '{h}', '{g7}'"},
		{"drop_groups", "int", dropGroups, "0, '{h}', '{g7}'"},
		{"drain", "int, text, text[], int", drainInbox, "0, '1000000', '{k7}', 1000"},
	}
	for _, x := range statements {
		run(fmt.Sprintf("PREPARE %s (%s) AS %s", x.name, x.types, x.text))
		run(fmt.Sprintf("EXECUTE %s(%s)", x.name, x.args))
	}
	run(`INSERT INTO tickless.tasks SELECT 0, 'k' || i, 1, i, 'h', '', '', i, 0, 0, 0, NULL, false, 0, 0, '' FROM generate_series(1, 20000) i`)
	run(`INSERT INTO tickless.versions SELECT 0, 's' || i, 1, 0, 0, false, '{}' FROM generate_series(1, 20000) i`)
	run(`INSERT INTO tickless.groups SELECT 0, 'h', 'g' || i, i, '{}' FROM generate_series(1, 20000) i`)
	run(`INSERT INTO tickless.inbox (shard, tx, id, handler, schedule, at) SELECT 0, '7', 'k' || i, 'h', '', 0 FROM generate_series(1, 20000) i`)
	for _, x := range statements {
		total := 0
		plan := run(fmt.Sprintf("EXPLAIN (ANALYZE, BUFFERS) EXECUTE %s(%s)", x.name, x.args))
		for _, line := range plan {
			if _, hit, ok := strings.Cut(line, "Buffers: shared hit="); ok {
				var n int
				_, _ = fmt.Sscan(hit, &n)
				total = max(total, n)
			}
		}
		require.Positive(t, total, x.name)
		require.Less(t, total, 60, "%s:\n%s", x.name, strings.Join(plan, "\n"))
	}
}

// A server that is a standby is read-only. When it becomes the primary, the Store goes on, also
// if the last commands did not reach it.
func TestFaults_Failover(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "fsync=off")
	pool := newPool(t, server.URL("postgres"))
	_, err := Migrate(t.Context(), pool)
	require.NoError(t, err)
	s := New(pool)
	defer s.Close()
	c := durable.New(s)
	require.NoError(t, schedule(t, c, "before"))
	_, err = c.Schedule(t.Context(), item("claimed", durable.After(0)).Task, durable.After(0))
	require.NoError(t, err)

	// The standby has what the primary had at this time.
	server.Kill()
	standby := server.Dir + "-standby"
	require.NoError(t, exec.Command("cp", "-a", server.Dir, standby).Run())
	server.Restart()
	require.Eventually(t, func() bool { return schedule(t, c, "lost") == nil }, time.Minute, 10*time.Millisecond)
	for i := range 50 {
		require.NoError(t, schedule(t, c, fmt.Sprint("lost", i)))
	}
	claim := store.Round{Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}, Lease: time.Minute, MaxCrashes: 5}
	stamp := store.Stamp{Sender: "w", Number: 1, Until: store.Farthest}
	a, err := s.Do(t.Context(), 0, stamp, claim)
	require.NoError(t, err)
	require.Len(t, a.Tasks, 1)

	server.Kill()
	require.NoError(t, os.RemoveAll(server.Dir))
	require.NoError(t, os.Rename(standby, server.Dir))
	require.NoError(t, os.WriteFile(filepath.Join(server.Dir, "standby.signal"), nil, 0o600))
	server.Restart()
	require.Eventually(t, func() bool { _, err := c.Get(t.Context(), "before"); return err == nil }, time.Minute, 10*time.Millisecond)
	require.ErrorIs(t, schedule(t, c, "k"), ErrReadOnly)
	h, err := c.Check(t.Context())
	require.NoError(t, err)
	require.Contains(t, strings.Join(h.Warnings, "; "), "read-only")

	_, err = pool.Exec(t.Context(), "SELECT pg_promote()")
	require.NoError(t, err)
	// Its transaction ids are lower than those that were lost.
	require.Eventually(t, func() bool { return s.ScheduleTx(t.Context(), pool, item("tx", durable.After(time.Hour))) == nil }, time.Minute, 10*time.Millisecond)
	_, err = c.Get(t.Context(), "tx")
	require.NoError(t, err)
	require.NoError(t, schedule(t, c, "k"))
	_, err = c.Get(t.Context(), "lost")
	require.ErrorIs(t, err, durable.ErrNotFound)
	// The claim is lost too: its report has no effect, and the task runs again, with a token
	// that nobody has had.
	lease := store.Lease{ID: a.Tasks[0].ID, Token: a.Tasks[0].Token}
	round := claim
	round.Reports = []store.Report{{Lease: lease, End: store.Done}}
	stamp.Number++
	b, err := s.Do(t.Context(), 0, stamp, round)
	require.NoError(t, err)
	require.Equal(t, []store.Receipt{store.Refused}, b.Receipts)
	require.Len(t, b.Tasks, 1)
	require.Equal(t, "claimed", b.Tasks[0].ID)
	require.Greater(t, b.Tasks[0].Token, a.Tasks[0].Token)
}

// In a database with a language's order, lists have the order of bytes.
func TestFaults_Collation(t *testing.T) {
	name := fmt.Sprint("language", schemaNumber.Add(1))
	_, err := newPool(t, sharedServer(t).URL("postgres")).Exec(t.Context(), "CREATE DATABASE "+name+" LOCALE_PROVIDER icu ICU_LOCALE 'en-US' TEMPLATE template0")
	require.NoError(t, err)
	pool := newPool(t, sharedServer(t).URL(name))
	_, err = Migrate(t.Context(), pool)
	require.NoError(t, err)
	s := New(pool)
	defer s.Close()
	c := durable.New(s)
	keys := []string{"K-B", "K-a", "k-A", "k-B", "k-a", "k-b", "k-ä", "k-日", "kä", "ka"}
	for _, handler := range []string{"Z", "a"} {
		for _, k := range keys {
			_, err := c.Schedule(t.Context(), durable.Task{Key: handler + k, Handler: handler}, durable.At(time.Unix(4e9, 0)))
			require.NoError(t, err)
		}
	}
	list := func(f store.Filter) (ids []string) {
		p := store.Page{}
		for {
			p, err = s.List(t.Context(), 0, f, p.Next, 2)
			require.NoError(t, err)
			for _, e := range p.Entries {
				ids = append(ids, e.ID)
			}
			if p.Next == (store.Cursor{}) {
				return ids
			}
		}
	}
	all := list(store.Filter{})
	require.Len(t, all, 2*len(keys))
	require.True(t, slices.IsSorted(all))
	require.Equal(t, []string{"ak-A", "ak-B", "ak-a", "ak-b", "ak-ä", "ak-日"}, list(store.Filter{Prefix: "ak-"}))
}
