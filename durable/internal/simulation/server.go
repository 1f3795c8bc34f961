package simulation

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

// A wallClock is the store's clock: its time of day can be set.
type wallClock struct{ offset atomic.Int64 }

func (c *wallClock) Now() time.Time                    { return time.Now() }
func (c *wallClock) Wall() time.Time                   { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *wallClock) NewAlarm(f func()) clock.Alarm     { return clock.System().NewAlarm(f) }
func (c *wallClock) set(d time.Duration)               { c.offset.Add(int64(d)) }
func (c *wallClock) offsetNow() (offset time.Duration) { return time.Duration(c.offset.Load()) }

// A server carries out the messages that reach the store, one at a time, and tells the
// judges.
type server struct {
	*simulation
	clock    wallClock
	lock     chan struct{} // full while a message is carried out
	st       store.Store
	judges   []*storetest.Judge
	offsets  []time.Duration // the clock's offset at each shard's latest command
	commands int
	isDown   bool // guarded by lock
}

// A violation is what a judge has found.
type violation string

var background = context.Background()

var errDown = errors.New("simulation: the store is down")

func (s *server) open(o Opener) error {
	s.lock = make(chan struct{}, 1)
	st, err := o.Open(&s.clock, s.shards)
	if err != nil {
		return err
	}
	s.st = st
	s.offsets = make([]time.Duration, st.Shards())
	for shard := range st.Shards() {
		s.judges = append(s.judges, storetest.NewJudge(
			func(difference string) { panic(violation(difference)) },
			func(f store.Filter) []store.Entry { return s.list(shard, f) },
		))
	}
	return nil
}

// must returns x. An error is a violation.
func must[T any](x T, err error) T {
	if err != nil {
		panic(violation(err.Error()))
	}
	return x
}

func (s *server) list(shard int, f store.Filter) (all []store.Entry) {
	for p := (store.Page{Next: store.Cursor{}}); ; {
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
			err = errDown
		}
		<-s.lock
	}()
	if s.isDown {
		return errDown
	}
	f(s.judges[shard], must(s.st.Now(background, 0)))
	return nil
}

// begin tells the judge of the clock's step since the shard's latest command. A step of
// more than a second counts.
func (s *server) begin(j *storetest.Judge, shard int, now store.Time) {
	d := s.clock.offsetNow() - s.offsets[shard]
	s.offsets[shard] += d
	if d > time.Second || d < -time.Second {
		j.ClockWasSet(now)
	}
}

// finish compares all data after some of the commands.
func (s *server) finish(j *storetest.Judge, shard int, now store.Time) {
	if s.commands++; s.commands%s.opener.CompareEvery == 0 {
		j.Compare(now, must(s.st.Stats(background, shard)))
		s.checkExplanations(j, shard, now)
	}
}

// restart closes the store, and opens it again after d.
func (s *server) restart(d time.Duration) {
	s.lock <- struct{}{}
	s.isDown = true
	<-s.lock
	s.trace("store", "is down for %v", d)
	s.mu.Lock()
	for _, e := range s.ends {
		e.mu.Lock()
		close(e.broken)
		e.broken = make(chan struct{})
		e.mu.Unlock()
	}
	s.mu.Unlock()
	time.Sleep(d)
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	if s.opener.Reopen != nil {
		st, err := s.opener.Reopen(s.st, &s.clock)
		if err != nil {
			s.fail("reopen", "%v", err)
			return
		}
		s.st = st
	}
	s.isDown = false
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
	downErr := s.withShard(shard, func(j *storetest.Judge, now store.Time) {
		out, err = s.st.Change(background, shard, stamp, c)
		if errors.Is(err, store.ErrInvalid) {
			return
		}
		s.begin(j, shard, now)
		if j.Change(now, stamp, c, out, err) {
			s.trace(from, "%s/%d %s: %v", opNames[c.Op], shard, idsOf(c.Items), out)
			s.ledger.carriedOut(op, &c, out)
		} else {
			s.trace(from, "%s/%d %s again: %v, %v", opNames[c.Op], shard, idsOf(c.Items), out, err)
		}
		s.finish(j, shard, now)
	})
	return out, errors.Join(downErr, err)
}

func (s *server) do(from string, shard int, stamp store.Stamp, r store.Round) (a store.Answer, err error) {
	downErr := s.withShard(shard, func(j *storetest.Judge, now store.Time) {
		a, err = s.st.Do(background, shard, stamp, r)
		if errors.Is(err, store.ErrInvalid) {
			s.fail("invalid", "%s sent an invalid round: %v", from, err)
			return
		}
		s.begin(j, shard, now)
		isNew := j.Do(now, stamp, r, a, err)
		s.trace(from, "round/%d %s new=%v: %s, %v", shard, roundText(&r), isNew, answerText(&a), err)
		if isNew {
			s.ledger.reported(&r, &a)
		}
		s.finish(j, shard, now)
	})
	return a, errors.Join(downErr, err)
}
