package durable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/internal/worker"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// CommandStats are a Client's counters for one type of store command, including the
// commands of its Workers.
type CommandStats struct {
	// Command is the type: "schedule", "reschedule", "cancel", "requeue", "purge",
	// "import", "limit", "pause task", "resume task", "pause handler", "resume handler",
	// "pause", "resume", "sync", "round" (of a Worker), "now", "get", "list", "stats",
	// "workers", "check" or "repair".
	Command string
	// Took is how long each command took, whether it succeeded or not. One call of a
	// method may send several commands.
	Took timer.Histogram
	// Errors is the number of commands that failed, except with [ErrNotFound].
	Errors int64
	// Outcomes counts the outcomes of the tasks in successful commands. It is nil for
	// types without outcomes.
	Outcomes map[Outcome]int64
}

// CommandStats returns the counters of each type of command that the Client and its
// Workers have sent. It does not access the store. O(1).
func (c *Client) CommandStats() []CommandStats {
	var commandStats []CommandStats
	for i := range c.store.counters {
		n := &c.store.counters[i]
		n.mu.Lock()
		st := n.stats
		st.Command, st.Outcomes = commandNames[i], maps.Clone(st.Outcomes)
		n.mu.Unlock()
		if st.Took.Count() > 0 {
			commandStats = append(commandStats, st)
		}
	}
	return commandStats
}

// The types of commands. Commands of Store.Change have the numbers of their Ops. The
// other types have the numbers after the Ops.
const (
	typeRound = iota + int(store.Sync) + 1
	typeNow
	typeGet
	typeList
	typeStats
	typeWorkers
	typeCheck
	typeRepair
	numCommandTypes
)

var commandNames = [numCommandTypes]string{
	store.Schedule: "schedule", store.Reschedule: "reschedule", store.Cancel: "cancel", store.Requeue: "requeue",
	store.Purge: "purge", store.Import: "import", store.SetLimit: "limit",
	store.PauseTask: "pause task", store.ResumeTask: "resume task",
	store.PauseHandler: "pause handler", store.ResumeHandler: "resume handler", store.Pause: "pause", store.Resume: "resume", store.Sync: "sync",
	typeRound: "round", typeNow: "now", typeGet: "get", typeList: "list", typeStats: "stats", typeWorkers: "workers",
	typeCheck: "check", typeRepair: "repair",
}

type commandCounter struct{ counters[CommandStats] }

// recordCommand counts a command, its duration and its error. The methods of timedStore
// defer this call. A panic of the store becomes the command's error: otherwise it would end
// the process, because workers and batches call the store on their own goroutines.
func (c *commandCounter) recordCommand(began time.Time, err *error) {
	if v := recover(); v != nil {
		*err = storePanicError(v)
	}
	duration := time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Took.Record(duration)
	if *err != nil && !errors.Is(*err, store.ErrNotFound) {
		c.stats.Errors++
	}
}

func storePanicError(v any) error {
	return fmt.Errorf("durable: panic in the store: %v\n%s", v, debug.Stack())
}

// A timedStore is a Store that counts its commands and measures how long they take.
type timedStore struct {
	store.Store
	counters [numCommandTypes]commandCounter
	mu       sync.Mutex
	workers  []*worker.Run // of the running Workers, in the order in which they have begun
}

func (s *timedStore) addWorker(r *worker.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers = append(s.workers, r)
}

func (s *timedStore) removeWorker(r *worker.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers = slices.DeleteFunc(slices.Clone(s.workers), func(x *worker.Run) bool { return x == r })
}

func (s *timedStore) Now(ctx context.Context, shard int) (_ store.Time, err error) {
	defer s.counters[typeNow].recordCommand(time.Now(), &err)
	return s.Store.Now(ctx, shard)
}

func (s *timedStore) Change(ctx context.Context, shard int, stamp store.Stamp, c store.Command) (out []Outcome, err error) {
	n := &s.counters[c.Op]
	defer n.recordCommand(time.Now(), &err)
	if out, err = s.Store.Change(ctx, shard, stamp, c); err != nil {
		return out, err
	}
	if c.Op == store.Cancel {
		s.notifyCancelled(shard, c.Items, out)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stats.Outcomes == nil && len(out) > 0 {
		n.stats.Outcomes = make(map[Outcome]int64)
	}
	for _, o := range out {
		n.stats.Outcomes[o]++
	}
	return out, nil
}

func (s *timedStore) Do(ctx context.Context, shard int, stamp store.Stamp, r store.Round) (_ store.Answer, err error) {
	defer s.counters[typeRound].recordCommand(time.Now(), &err)
	return s.Store.Do(ctx, shard, stamp, r)
}

// Wait is not counted: it lasts as long as its worker.
func (s *timedStore) Wait(ctx context.Context, shards []int, wake func(shard int)) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = storePanicError(v)
		}
	}()
	return s.Store.Wait(ctx, shards, wake)
}

func (s *timedStore) Get(ctx context.Context, shard int, id string) (_ store.Entry, err error) {
	defer s.counters[typeGet].recordCommand(time.Now(), &err)
	return s.Store.Get(ctx, shard, id)
}

func (s *timedStore) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (_ store.Page, err error) {
	defer s.counters[typeList].recordCommand(time.Now(), &err)
	return s.Store.List(ctx, shard, f, c, limit)
}

func (s *timedStore) Stats(ctx context.Context, shard int) (_ store.Stats, err error) {
	defer s.counters[typeStats].recordCommand(time.Now(), &err)
	return s.Store.Stats(ctx, shard)
}

func (s *timedStore) Workers(ctx context.Context, shard int) (_ []store.Worker, err error) {
	defer s.counters[typeWorkers].recordCommand(time.Now(), &err)
	return s.Store.Workers(ctx, shard)
}

func (s *timedStore) Check(ctx context.Context) (_ store.Health, err error) {
	defer s.counters[typeCheck].recordCommand(time.Now(), &err)
	return s.Store.Check(ctx)
}

func (s *timedStore) Repair(ctx context.Context, shard int) (_ store.Repair, err error) {
	defer s.counters[typeRepair].recordCommand(time.Now(), &err)
	return s.Store.Repair(ctx, shard)
}

// notifyCancelled makes this Client's own Workers extend the leases of running tasks that were
// cancelled: when a Worker extends a lease, it learns that the task was cancelled.
func (s *timedStore) notifyCancelled(shard int, items []store.Item, outcomes []Outcome) {
	s.mu.Lock()
	workers := s.workers
	s.mu.Unlock()
	for i, outcome := range outcomes {
		if outcome == Stopping {
			for _, run := range workers {
				run.ExtendLeaseNow(shard, items[i].ID)
			}
		}
	}
}
