package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/batch"
	"github.com/tickless/tickless/durable/store/machine"
)

// A transaction takes two round trips: the first begins it, locks the shard and reads what
// the calls need, and the second writes and commits. Calls that need more rows than could
// be known before take a round trip more, and some take one: see guess.

const (
	// transactionTime is the longest time for a transaction, in case the server hangs.
	transactionTime = 30 * time.Second
	// maxAttempts is how often a transaction is tried: see isTransient.
	maxAttempts = 5
)

const begin = `BEGIN ISOLATION LEVEL READ COMMITTED`

// lockShard waits for the shard's lock. If this process hangs or its host is gone, the server
// ends the transaction after 10 s.
const lockShard = `SELECT set_config('idle_in_transaction_session_timeout', '10s', true), ` + fixPlans + `,
	pg_advisory_xact_lock('tickless.versions'::regclass::oid::int, $1)`

// fixPlans makes the server use the indexes, whatever its statistics say.
const fixPlans = `set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)`

// transact executes calls in one transaction. It repeats a transaction that was surely
// rolled back if it may succeed the next time.
func (s *Store) transact(x *shard, calls []*call) (maybeCommitted bool, err error) {
	calls = batch.Begin(calls)
	for i := 1; len(calls) > 0; i++ {
		maybeCommitted, err = s.tryTransact(x, calls)
		if err == nil || maybeCommitted || i == maxAttempts || !isTransient(err) {
			return maybeCommitted, wrapError(err, maybeCommitted)
		}
		select {
		case <-s.closed:
			return false, store.ErrClosed
		case <-time.After(time.Duration(i) * 5 * time.Millisecond):
		}
	}
	return false, nil
}

func (s *Store) tryTransact(x *shard, calls []*call) (maybeCommitted bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), transactionTime)
	defer cancel()
	if err := s.checkSchema(ctx); err != nil {
		return false, err
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer release(conn)
	m := x.memory
	x.memory = memory{} // unless the transaction commits
	defer batch.Recover(&err)
	ix := newIndex(ctx, conn, s, x, &m)
	isDone, maybeCommitted, err := ix.guess(calls)
	if !isDone && err == nil {
		ix = newIndex(ctx, conn, s, x, &m)
		ix.begin(calls)
		for _, c := range calls {
			c.Execute(ix)
		}
		var b pgx.Batch
		ix.writeChanges(&b)
		maybeCommitted, err = ix.commit(&b)
	}
	if err != nil {
		return maybeCommitted, err
	}
	x.memory = ix.remember(m)
	x.horizon.Store(&ix.nextHorizon)
	s.wakeIfChanged(x, ix.numbers.Wakes)
	if ix.numbers.Wakes != ix.storedNumbers.Wakes && !s.pollOnly {
		s.notify(x)
	}
	return true, nil
}

// commit sends the last statements of a transaction.
func (ix *index) commit(b *pgx.Batch) (maybeCommitted bool, err error) {
	b.Queue("COMMIT")
	err = ix.conn.SendBatch(ix.ctx, b).Close()
	code, fatal := sqlState(err)
	// An ordinary error of the server means that it has rolled back. Whether pgx says
	// SafeToRetry tells nothing: it also does when the connection ends after sending.
	return err != nil && (code == "" || fatal), err
}

const (
	// guessAfter is how many transactions must be calm before one guesses.
	guessAfter = 4
	// maxGuess is how much the server's time may differ from the one that a guess assumes, which is
	// not before the command was sent.
	maxGuess = 10 * time.Millisecond
)

var errNotRemembered = errors.New("not remembered")

// guess carries out calls in one round trip, if they only add tasks. It assumes that nobody has
// changed the shard since its latest transaction, so that all is known, and that the tasks are
// new. If that is wrong, it changes nothing and returns false.
func (ix *index) guess(calls []*call) (isDone, maybeCommitted bool, err error) {
	m := ix.memory
	if m.calm < guessAfter || m.numbers.Limits+m.numbers.Groups > 0 {
		return false, false, nil
	}
	steady := ix.store.steady()
	ix.now = machine.Moment{Wall: m.numbers.Wall.Add(steady - m.numbers.Steady), Steady: steady, Boot: ix.store.steadyName}
	ix.numbers, ix.storedNumbers, ix.nextHorizon, ix.guesses = m.numbers, m.numbers, ix.horizon, true
	ids := []string{}
	for _, c := range calls {
		d := m.senders[c.Sender]
		if d == nil || c.Claim != nil {
			return false, false, nil
		}
		ix.documents[c.Sender] = d
		for _, id := range c.TaskIDs {
			if m.running[id] != nil {
				return false, false, nil
			}
			ix.tasks[id] = new(cachedTask)
			ids = append(ids, encodeID(id))
		}
	}
	defer func() {
		if !isDone {
			m.calm, m.senders = 0, nil // the calls may have changed them
		}
		if errors.Is(err, errNotRemembered) {
			err = nil
		}
	}()
	defer batch.Recover(&err)
	for _, c := range calls {
		c.Execute(ix)
	}
	_, inserted, _ := ix.changes()
	args := []any{ix.shard, m.numbers.version, m.numbers.text, int64(ix.now.Wall), maxGuess.Microseconds(), ix.horizon.server, ix.horizon.from, ids}
	args = append(append(args, insertedColumns(inserted)...), ix.newVersions()...)
	var b pgx.Batch
	b.Queue(begin)
	b.Queue(ix.store.sql(lockShard), ix.shard)
	b.Queue(ix.store.sql(addTasks), args...).Exec(func(tag pgconn.CommandTag) error {
		isDone = tag.RowsAffected() > 0
		return nil
	})
	maybeCommitted, err = ix.commit(&b)
	return isDone, maybeCommitted, err
}

// begin begins the transaction and reads the rows that the calls need.
func (ix *index) begin(calls []*call) {
	var b pgx.Batch
	b.Queue(begin)
	b.Queue(ix.store.sql(lockShard), ix.shard)
	var ids, names []string
	var claims []*store.Claim
	for _, c := range calls {
		ids = append(ids, c.TaskIDs...)
		if c.Sender != "" {
			names = append(names, c.Sender)
		}
		if c.Claim != nil {
			claims = append(claims, c.Claim)
		}
	}
	ix.loadDocuments(&b, names)
	ix.loadTasks(&b, ids)
	if claims != nil {
		ix.loadLeases(&b)
		ix.loadClaims(&b, claims)
		if ix.memory.numbers.Groups > 0 {
			ix.loadFirstGroups(&b, firstGroupsRead)
		}
	}
	ix.send(&b)
	if ix.hasInbox {
		ix.drain(ids)
	}
	ix.loadRuns(ids)
}

// loadRuns reads the entries that the finished runs of tasks will replace.
func (ix *index) loadRuns(ids []string) {
	var runs []string
	for _, id := range ids {
		if head := ix.tasks[store.HeadID(id)]; head != nil {
			if run, ok := ix.tasks[id].NextRunID(&head.Task); ok {
				runs = append(runs, run)
			}
		}
	}
	var b pgx.Batch
	ix.loadTasks(&b, runs)
	ix.send(&b)
}

// Change carries out a command.
func (s *Store) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	if c.Op == store.SetLimit && len(s.shards) > 1 {
		return nil, fmt.Errorf("pgstore: a limit counts the tasks of one shard, and the store has %d: %w", len(s.shards), store.ErrInvalid)
	}
	return s.shards[shard].calls.Change(ctx, st, c)
}

// maxSleep is the longest time between two claims of a worker: its server's clock may be
// set, and a wake-up may be lost with its process.
const maxSleep = 5 * time.Second

// Do carries out a worker's round.
func (s *Store) Do(ctx context.Context, shard int, st store.Stamp, r store.Round) (store.Answer, error) {
	if err := s.checkOpen(ctx); err != nil {
		return store.Answer{}, err
	}
	answer, err := s.shards[shard].calls.Do(ctx, st, r)
	if err == nil && (answer.Next < 0 || answer.Next > maxSleep) {
		answer.Next = maxSleep
	}
	return answer, err
}

// drain moves the tasks that wait in the shard's inbox to their table. It reports whether
// some are left: see maxDrained.
func (s *Store) drain(ctx context.Context, x *shard) (left bool, err error) {
	leftLater := false
	err = x.calls.Call(ctx, &call{Run: func(ix *index) error {
		leftLater = ix.inboxLeft
		return nil
	}})
	return err == nil && leftLater, err
}

// release returns a connection to the pool. The pool closes it if its transaction is open,
// so release rolls it back first.
func release(conn *pgxpool.Conn) {
	if !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != 'I' && !conn.Conn().PgConn().IsBusy() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, _ = conn.Exec(ctx, "ROLLBACK")
		cancel()
	}
	conn.Release()
}
