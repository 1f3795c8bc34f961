package durable

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// CommandStats are a Client's counters for one type of store command, including the
// commands of its Workers.
type CommandStats struct {
	// Command is the type: "schedule", "reschedule", "cancel", "requeue", "purge",
	// "limit", "pause" or "resume", a Worker's "round", or "now", "get", "list", "stats",
	// "forecast", "check" or "repair".
	Command string
	// Took is how long the store took for each command, whether it succeeded or not.
	// One call of a method may need several commands.
	Took timer.Histogram
	// Errors is the number of commands that failed, except with [ErrNotFound].
	Errors int64
	// Outcomes counts the outcomes of the tasks in successful commands. It is nil for
	// types without outcomes.
	Outcomes map[Outcome]int64
}

// CommandStats returns the counters of each type of command that the Client and its
// Workers have sent, in the order of [CommandStats.Command]. It does not access the
// store. O(1).
func (c *Client) CommandStats() []CommandStats {
	var all []CommandStats
	for i := range c.store.commands {
		if st := c.store.commands[i].read(commandNames[i]); st.Took.Count() > 0 {
			all = append(all, st)
		}
	}
	return all
}

// The types of commands. Those of Change have the numbers of their Ops.
const (
	doRound = iota + int(store.Resume) + 1
	askNow
	askGet
	askList
	askStats
	askForecast
	askCheck
	askRepair
	numCommands
)

var commandNames = [numCommands]string{
	store.Schedule: "schedule", store.Reschedule: "reschedule", store.Cancel: "cancel", store.Requeue: "requeue",
	store.Purge: "purge", store.Import: "import", store.SetLimit: "limit", store.Pause: "pause", store.Resume: "resume",
	doRound: "round", askNow: "now", askGet: "get", askList: "list", askStats: "stats",
	askForecast: "forecast", askCheck: "check", askRepair: "repair",
}

// A commandCount counts one type of command.
type commandCount struct {
	errors   atomic.Int64
	outcomes [store.Stopping + 1]atomic.Int64

	mu   sync.Mutex
	took timer.Histogram
}

func (c *commandCount) done(began time.Time, err error) {
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		c.errors.Add(1)
	}
	took := time.Since(began)
	c.mu.Lock()
	c.took.Record(took)
	c.mu.Unlock()
}

func (c *commandCount) read(name string) CommandStats {
	st := CommandStats{Command: name, Errors: c.errors.Load()}
	for o := range c.outcomes {
		if n := c.outcomes[o].Load(); n > 0 {
			if st.Outcomes == nil {
				st.Outcomes = make(map[Outcome]int64)
			}
			st.Outcomes[Outcome(o)] = n
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st.Took = c.took
	return st
}

// A timedStore is a Store that counts and times its commands.
type timedStore struct {
	store.Store
	commands  [numCommands]commandCount
	workforce workforce
}

func (s *timedStore) Now(ctx context.Context, shard int) (store.Time, error) {
	began := time.Now()
	t, err := s.Store.Now(ctx, shard)
	s.commands[askNow].done(began, err)
	return t, err
}

func (s *timedStore) Change(ctx context.Context, shard int, stamp store.Stamp, c store.Command) ([]Outcome, error) {
	began := time.Now()
	out, err := s.Store.Change(ctx, shard, stamp, c)
	n := &s.commands[c.Op]
	n.done(began, err)
	if err == nil {
		if c.Op == store.Cancel {
			s.workforce.cancelled(shard, c.Items, out)
		}
		for _, o := range out {
			if int(o) < len(n.outcomes) {
				n.outcomes[o].Add(1)
			}
		}
	}
	return out, err
}

func (s *timedStore) Do(ctx context.Context, shard int, stamp store.Stamp, r store.Round) (store.Answer, error) {
	began := time.Now()
	a, err := s.Store.Do(ctx, shard, stamp, r)
	s.commands[doRound].done(began, err)
	return a, err
}

func (s *timedStore) Get(ctx context.Context, shard int, id string) (store.Entry, error) {
	began := time.Now()
	e, err := s.Store.Get(ctx, shard, id)
	s.commands[askGet].done(began, err)
	return e, err
}

func (s *timedStore) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (store.Page, error) {
	began := time.Now()
	p, err := s.Store.List(ctx, shard, f, c, limit)
	s.commands[askList].done(began, err)
	return p, err
}

func (s *timedStore) Stats(ctx context.Context, shard int) (store.Stats, error) {
	began := time.Now()
	st, err := s.Store.Stats(ctx, shard)
	s.commands[askStats].done(began, err)
	return st, err
}

func (s *timedStore) Forecast(ctx context.Context, shard int, moments []store.Time) ([]int64, error) {
	began := time.Now()
	n, err := s.Store.Forecast(ctx, shard, moments)
	s.commands[askForecast].done(began, err)
	return n, err
}

func (s *timedStore) Check(ctx context.Context) (store.Health, error) {
	began := time.Now()
	h, err := s.Store.Check(ctx)
	s.commands[askCheck].done(began, err)
	return h, err
}

func (s *timedStore) Repair(ctx context.Context, shard int) (store.Repair, error) {
	began := time.Now()
	r, err := s.Store.Repair(ctx, shard)
	s.commands[askRepair].done(began, err)
	return r, err
}
