package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

// A wallClock is the store's clock: its time of day can be set.
type wallClock struct{ offset atomic.Int64 }

func (c *wallClock) Now() time.Time                    { return time.Now() }
func (c *wallClock) Wall() time.Time                   { return time.Now().Add(c.offsetNow()) }
func (c *wallClock) NewAlarm(f func()) clock.Alarm     { return clock.System().NewAlarm(f) }
func (c *wallClock) set(d time.Duration)               { c.offset.Add(int64(d)) }
func (c *wallClock) offsetNow() (offset time.Duration) { return time.Duration(c.offset.Load()) }

// A server carries out the messages that reach a store, one at a time, and tells the
// judges.
type server struct {
	*simulation
	clock    wallClock
	lock     chan struct{} // full while a message is carried out
	st       store.Store
	judges   []*storetest.Judge
	offsets  []time.Duration // the clock's offset at each shard's latest command
	commands int
	wakes    []atomic.Int64 // by shard: how often the store has woken workers

	ends      []*endpoint // guarded by mu
	downUntil time.Time   // guarded by mu
}

// A violation is what a judge has found.
type violation string

var background = context.Background()

var errStopped = errors.New("simulation: a judge has found a failure")

// newServer opens an empty store.
func (s *simulation) newServer() (*server, error) {
	x := &server{simulation: s, lock: make(chan struct{}, 1)}
	st, err := s.opener.Open(&x.clock, s.shards)
	if err != nil {
		return nil, err
	}
	x.st, x.offsets, x.wakes = st, make([]time.Duration, st.Shards()), make([]atomic.Int64, st.Shards())
	go x.countWakes(st)
	for shard := range st.Shards() {
		x.judges = append(x.judges, storetest.NewJudge(
			func(difference string) { panic(violation(difference)) },
			func(f store.Filter) []store.Entry { return x.list(shard, f) },
			func() int { return int(x.wakes[shard].Load()) },
		))
	}
	return x, nil
}

// countWakes counts the wake-ups of a store until it is closed.
func (s *server) countWakes(st store.Store) {
	var shards []int
	for shard := range s.wakes {
		shards = append(shards, shard)
	}
	_ = st.Wait(background, shards, func(shard int) { s.wakes[shard].Add(1) })
}

// must returns x. An error is a violation.
func must[T any](x T, err error) T {
	if err != nil {
		panic(violation(err.Error()))
	}
	return x
}

func (s *server) list(shard int, f store.Filter) (all []store.Entry) {
	for p := (store.Page{}); ; {
		p = must(s.st.List(background, shard, f, p.Next, store.MaxPage))
		if all = append(all, p.Entries...); p.Next == (store.Cursor{}) {
			return all
		}
	}
}

// withShard calls f while no other message is carried out. It reports what a judge finds.
func (s *server) withShard(shard int, f func(j *storetest.Judge, now store.Time)) (err error) {
	s.lock <- struct{}{}
	defer func() {
		if v := recover(); v != nil {
			found, ok := v.(violation)
			if !ok {
				panic(v)
			}
			s.fail("model", "shard %d: %s", shard, string(found))
			err = errStopped
		}
		<-s.lock
	}()
	f(s.judges[shard], must(s.st.Now(background, 0)))
	return nil
}

// begin tells the judge of the clock's step since the shard's latest command. A step of
// more than a second counts.
func (s *server) begin(j *storetest.Judge, shard int, now store.Time) {
	d := s.clock.offsetNow() - s.offsets[shard]
	s.offsets[shard] += d
	if d.Abs() > time.Second {
		j.ClockWasSet(now)
	}
}

// finish compares all data after some of the commands.
func (s *server) finish(j *storetest.Judge, shard int, now store.Time) {
	if s.commands++; s.commands%s.opener.CompareEvery == 0 {
		j.Compare(now, must(s.st.Stats(background, shard)))
	}
}

// restart makes the store unreachable for d. Then it closes the store, and opens it again.
func (s *server) restart(d time.Duration) {
	s.trace("store", "is down for %v", d)
	s.mu.Lock()
	s.downUntil = time.Now().Add(d)
	for _, e := range s.ends {
		e.breakUp(d)
	}
	s.mu.Unlock()
	time.Sleep(d)
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	if s.opener.Reopen == nil {
		return
	}
	st, err := s.opener.Reopen(s.st, &s.clock)
	if err != nil {
		s.fail("reopen", "%v", err)
		return
	}
	s.st = st
	go s.countWakes(st)
}

func (s *server) compareAll() {
	for shard := range s.judges {
		_ = s.withShard(shard, func(j *storetest.Judge, now store.Time) {
			s.begin(j, shard, now)
			j.Compare(now, must(s.st.Stats(background, shard)))
		})
	}
}

func (s *server) change(from string, op *operation, shard int, stamp store.Stamp, c store.Command) (out []store.Outcome, err error) {
	stopped := s.withShard(shard, func(j *storetest.Judge, now store.Time) {
		if x := c.Items; len(x) > 0 && x[0].IfVersion > 0 {
			if e, err := s.st.Get(background, shard, x[0].ID); err == nil {
				j.See(e)
			}
		}
		out, err = s.st.Change(background, shard, stamp, c)
		s.begin(j, shard, now)
		isNew := j.Change(now, stamp, c, out, err)
		s.trace(from, "%s/%d %s new=%v: %v, %v", opNames[c.Op], shard, idsOf(c.Items), isNew, out, err)
		if isNew {
			s.ledger.carriedOut(from, op, &c, out)
		}
		s.finish(j, shard, now)
	})
	return out, errors.Join(stopped, err)
}

func (s *server) do(from string, shard int, stamp store.Stamp, r store.Round) (a store.Answer, err error) {
	stopped := s.withShard(shard, func(j *storetest.Judge, now store.Time) {
		a, err = s.st.Do(background, shard, stamp, r)
		s.begin(j, shard, now)
		isNew := j.Do(now, stamp, r, a, err)
		s.trace(from, "round/%d new=%v %s, %v", shard, isNew, roundText(&r, &a), err)
		s.ledger.answeredRound(stamp.Sender, &r, &a, isNew)
		if r.Leave && isNew {
			s.ledger.left(stamp.Sender, j)
		}
		s.finish(j, shard, now)
	})
	return a, errors.Join(stopped, err)
}

var opNames = [...]string{
	store.Schedule: "schedule", store.Reschedule: "reschedule", store.Cancel: "cancel", store.Requeue: "requeue", store.Purge: "purge",
	store.Import: "import", store.SetLimit: "limit", store.PauseTask: "pause task", store.ResumeTask: "resume task",
	store.PauseHandler: "pause handler", store.ResumeHandler: "resume handler", store.Pause: "pause", store.Resume: "resume", store.Sync: "sync",
}

func idsOf(items []store.Item) string {
	var ids []string
	for _, x := range items {
		ids = append(ids, fmt.Sprintf("%q at %v", x.ID, x.When))
	}
	return strings.Join(ids, ", ")
}

func roundText(r *store.Round, a *store.Answer) string {
	c := r.Claim
	c.Handlers, c.Schedules = nil, nil
	var got []store.Lease
	for _, x := range a.Tasks {
		got = append(got, store.Lease{ID: x.ID, Token: x.Token})
	}
	return fmt.Sprintf("%+v extend %v claim %+v: %v %v %v next %v limited %v", r.Reports, r.Extend, c, got, a.Receipts, a.Extensions, a.Next, a.Limited)
}
