package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A watch wakes the workers of this process when another process has committed new work. It
// runs while workers wait.
//
// A command whose task is due before all others wakes the workers of its own process at
// once, and sends a notification for the others. Notifications may be lost, and PgBouncer may
// forbid them. So a watch also probes: it reads how many wake-ups there were, and drains
// the inbox.
type watch struct {
	mu      sync.Mutex // guards waiting and stop
	waiting int        // how many calls of Wait there are
	stop    context.CancelFunc
}

const (
	notifyEvery = 10 * time.Millisecond // the shortest time between two notifications
	maxProbe    = time.Second           // the longest time between two probes with WithTxNotify
	maxRetry    = 5 * time.Second       // the longest time between two attempts to listen
)

// Wait first calls wake for each shard, so that no earlier change is missed.
func (s *Store) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	w := &s.watch
	w.mu.Lock()
	if w.waiting++; w.waiting == 1 {
		s.startWatchLocked()
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.waiting--; w.waiting == 0 {
			w.stop()
		}
	}()
	return s.waiters.Wait(ctx, shards, wake)
}

func (s *Store) startWatchLocked() {
	var ctx context.Context
	ctx, s.watch.stop = context.WithCancel(context.Background())
	if s.waiters.Closed() {
		return
	}
	s.goroutines.Go(func() { s.runProbes(ctx) })
	if !s.pollOnly {
		s.goroutines.Go(func() { s.listen(ctx) })
	}
}

// wakeIfChanged wakes the workers if the counter wakes of a shard has changed. Each change
// for which workers must wake up increments the counter.
func (s *Store) wakeIfChanged(x *shard, wakes int64) {
	if x.wakes.Swap(wakes) != wakes {
		s.waiters.Wake(x.number)
	}
}

// notify asks for a notification to other processes.
func (s *Store) notify(x *shard) {
	x.notifies.Store(true)
	select {
	case s.notifications <- struct{}{}:
	default:
	}
}

// runNotifications sends the notifications that are due, each in a transaction of its own
// that does not wait for the disk: the server has one lock for all commits with a
// notification.
func (s *Store) runNotifications() {
	for {
		select {
		case <-s.closed:
			return
		case <-s.notifications:
		}
		ctx, cancel := context.WithTimeout(context.Background(), transactionTime)
		for _, x := range s.shards {
			if x.notifies.Swap(false) {
				// A lost notification delays tasks only until the next probe.
				_, _ = s.pool.Exec(ctx, sendNotification, s.schema, fmt.Sprint(s.origin, " ", x.number))
			}
		}
		cancel()
		select {
		case <-s.closed:
			return
		case <-time.After(notifyEvery):
		}
	}
}

const sendNotification = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`

const probe = `SELECT wakes, EXISTS (SELECT FROM tickless.inbox WHERE shard = $1 AND tx >= $2::text::xid8)
	FROM tickless.versions WHERE shard = $1 AND name = '' ORDER BY version DESC LIMIT 1`

// runProbes probes until ctx ends.
func (s *Store) runProbes(ctx context.Context) {
	for failures := 0; ; {
		pause := s.probe
		if s.notifyTx && !s.pollOnly {
			pause = max(pause, maxProbe)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(pause<<failures, max(pause, time.Second))):
		}
		if err := s.probeOnce(ctx); err == nil {
			failures = 0
		} else if failures < 10 {
			failures++
		}
	}
}

func (s *Store) probeOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, transactionTime)
	defer cancel()
	var b pgx.Batch
	var full []*shard
	for _, x := range s.shards {
		b.Queue(s.sql(probe), x.number, x.horizon.Load().from).QueryRow(func(row pgx.Row) error {
			var wakes int64
			var hasInbox bool
			err := row.Scan(&wakes, &hasInbox)
			if err == nil {
				s.wakeIfChanged(x, wakes)
			}
			if hasInbox {
				full = append(full, x)
			}
			return err
		})
	}
	err := s.pool.SendBatch(ctx, &b).Close()
	for _, x := range full {
		_, drainErr := s.drain(ctx, x)
		err = errors.Join(err, drainErr)
	}
	return err
}

// listen wakes the workers when another process sends a notification, until ctx ends. It
// connects again after an error.
func (s *Store) listen(ctx context.Context) {
	for pause := time.Duration(0); ctx.Err() == nil; pause = min(2*pause+100*time.Millisecond, maxRetry) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		begin := time.Now()
		err := s.listenOnce(ctx)
		if ctx.Err() == nil {
			s.log.Warn("pgstore: the connection that listens for tasks of other processes failed; probes continue", "error", err)
		}
		if time.Since(begin) > time.Minute {
			pause = 0
		}
	}
}

// listenOnce listens until its connection fails. A payload is the sender's origin and the
// shard.
func (s *Store) listenOnce(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(ctx, "LISTEN "+s.schema); err != nil {
		return err
	}
	for i := range s.shards {
		s.waiters.Wake(i) // notifications were missed
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		origin, number, _ := strings.Cut(n.Payload, " ")
		if i, err := strconv.Atoi(number); err == nil && origin != s.origin && i >= 0 && i < len(s.shards) {
			s.waiters.Wake(i)
		}
	}
}
