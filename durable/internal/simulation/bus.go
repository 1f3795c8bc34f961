package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/jobs"
)

// An endpoint is an actor's connection to a store, from its start to its crash.
type endpoint struct {
	*server
	name   string
	client *durable.Client
	random *random.Source
	dead   chan struct{} // closed by kill
	once   sync.Once

	mu       sync.Mutex
	calls    map[string]int // by kind and shard
	broken   chan struct{}  // closed when the connection breaks
	cutUntil time.Time      // the actor cannot reach the store until then
	heldTill time.Time      // the actor stands still until then
}

var _ store.Store = (*endpoint)(nil)

var (
	errBroken = errors.New("simulation: the connection broke")
	errDied   = fmt.Errorf("%w: simulation: the process has died", store.ErrUnfit)
	errBusy   = fmt.Errorf("simulation: %w", store.ErrBusy)
)

// connect returns a new connection, with its Client.
func (s *server) connect(name string, knowsSchedule bool) *endpoint {
	r := s.plan.random(name, "pauses")
	e := &endpoint{server: s, name: name, random: random.New(r.Uint64(), r.Uint64()), dead: make(chan struct{}),
		calls: make(map[string]int), broken: make(chan struct{})}
	opts := []durable.Option{durable.WithLogger(quiet)}
	if knowsSchedule {
		opts = append(opts, durable.WithSchedule("s", jobs.Every(period)))
	}
	e.client = durable.New(e, opts...)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.cutUntil = s.downUntil
	s.ends = append(s.ends, e)
	return e
}

// Random gives durable's pauses a seed.
func (e *endpoint) Random() *random.Source { return e.random }

// kill ends all present and future calls. Messages that are under way arrive.
func (e *endpoint) kill() { e.once.Do(func() { close(e.dead) }) }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// breakUp breaks the connection, and keeps it broken for d.
func (e *endpoint) breakUp(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cutUntil = time.Now().Add(d)
	close(e.broken)
	e.broken = make(chan struct{})
}

func (e *endpoint) hold(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heldTill = time.Now().Add(d)
}

func (e *endpoint) isCut() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Now().Before(e.cutUntil)
}

// standStill waits while the actor is held. x makes the moment distinct.
func (e *endpoint) standStill(x time.Duration) {
	e.mu.Lock()
	d := time.Until(e.heldTill)
	e.mu.Unlock()
	if d > 0 {
		_ = e.pause(background, d+x, nil)
	}
}

// pause returns err after d, or the error of ctx.
func (e *endpoint) pause(ctx context.Context, d time.Duration, err error) error {
	select {
	case <-time.After(d):
		return err
	case <-e.dead:
		return errDied
	case <-ctx.Done():
		return store.Ended(ctx)
	}
}

// A fate is what happens to a call.
type fate struct {
	request, answer  time.Duration // how long the messages take
	jitter           time.Duration
	refused          bool
	lost, unanswered bool
	failsAfter       time.Duration // when a lost message is noticed, which may still be under way
	duplicate        time.Duration // a copy arrives then; 0: none
	gather           time.Duration // how long a round waits for more reports; 0: not at all
}

func (e *endpoint) fateOf(kind string, shard int) (f fate) {
	r := e.nextRandom(kind, shard)
	takes := func() time.Duration {
		d, x := upTo(r, 2*time.Millisecond), r.Float64()
		long := upTo(r, 12*time.Second)
		switch {
		case !e.on(slow) || x > .04:
			return d
		case x > .006:
			return long / 40
		}
		return long
	}
	happens := func(fault string, percent float64) bool { return chance(r, percent) && e.on(fault) }
	after := func(happens bool, d time.Duration) time.Duration {
		if d = upTo(r, d); happens {
			return d
		}
		return 0
	}
	f.request, f.answer, f.jitter = takes(), takes(), upTo(r, time.Microsecond)
	f.refused = happens(refuse, 3)
	f.lost, f.unanswered = happens(loss, 1.5), happens(loss, 2)
	f.failsAfter = upTo(r, randomOf(r, time.Millisecond, 100*time.Millisecond, 20*time.Second))
	f.duplicate = after(happens(duplicate, 2), randomOf(r, 5*time.Millisecond, 12*time.Second))
	f.gather = after(happens(gather, 15), 20*time.Millisecond)
	return f
}

// nextRandom returns the generator of the endpoint's next call of a kind.
func (e *endpoint) nextRandom(kind string, shard int) *rand.Rand {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := fmt.Sprint(kind, "/", shard)
	e.calls[k]++
	return e.plan.random(e.name, k, e.calls[k])
}

// call sends a message to the store and waits for the answer. carryOut runs when the
// message arrives.
func call[T any](ctx context.Context, e *endpoint, kind string, shard int, f fate, carryOut func() (T, error)) (got T, err error) {
	type result struct {
		value T
		err   error
	}
	if err := store.Ended(ctx); err != nil {
		return got, err
	}
	if e.standStill(f.jitter); isClosed(e.dead) {
		return got, errDied
	}
	if f.refused {
		e.trace(e.name, "%s/%d is refused", kind, shard)
		return got, e.pause(ctx, f.request, errBusy)
	}
	answers := make(chan result, 1)
	send := func(after time.Duration, isAnswered bool) {
		e.underWay.Go(func() {
			if time.Sleep(after); e.isCut() {
				return
			}
			value, err := carryOut()
			if time.Sleep(f.answer); isAnswered && !e.isCut() {
				e.standStill(f.jitter)
				answers <- result{value, err}
			}
		})
	}
	if f.lost = f.lost || e.isCut(); !f.lost {
		send(f.request, !f.unanswered)
	}
	if f.duplicate > 0 {
		send(f.duplicate, false)
	}
	var fails <-chan time.Time
	if f.lost || f.unanswered {
		fails = time.After(f.failsAfter)
	}
	e.mu.Lock()
	broken := e.broken
	e.mu.Unlock()
	select {
	case x := <-answers:
		return x.value, x.err
	case <-e.dead:
	case <-fails:
		err = errBroken
	case <-broken:
		if err = e.pause(ctx, f.jitter+f.request, errBroken); ctx.Err() != nil {
			err = ctx.Err() // the message was sent
		}
	case <-ctx.Done():
		time.Sleep(f.jitter)
		err = ctx.Err()
	}
	if isClosed(e.dead) {
		return got, errDied
	}
	e.trace(e.name, "%s/%d has no answer", kind, shard)
	return got, err
}

// read is a call that changes nothing.
func read[T any](ctx context.Context, e *endpoint, kind string, shard int, f func(st store.Store, ctx context.Context, shard int) (T, error)) (got T, err error) {
	fate := e.fateOf(kind, shard)
	fate.duplicate = 0
	return call(ctx, e, kind, shard, fate, func() (T, error) {
		e.lock <- struct{}{}
		defer func() { <-e.lock }()
		return f(e.st, background, shard)
	})
}

func (e *endpoint) Shards() int { return len(e.judges) }

func (e *endpoint) Change(ctx context.Context, shard int, stamp store.Stamp, c store.Command) ([]store.Outcome, error) {
	op, _ := ctx.Value(operationKey{}).(*operation)
	return call(ctx, e, opNames[c.Op], shard, e.fateOf("change", shard), func() ([]store.Outcome, error) {
		return e.change(e.name, op, shard, stamp, c)
	})
}

func (e *endpoint) Do(ctx context.Context, shard int, stamp store.Stamp, r store.Round) (store.Answer, error) {
	f := e.fateOf("round", shard)
	if r.More != nil && f.gather > 0 {
		if err := e.pause(ctx, f.gather, nil); err != nil {
			return store.Answer{}, err
		}
		r.More(&r)
	}
	r.More = nil
	r.Claim.Rooms = slices.Clone(r.Claim.Rooms)
	return call(ctx, e, "round", shard, f, func() (store.Answer, error) { return e.do(e.name, shard, stamp, r) })
}

func (e *endpoint) Now(ctx context.Context, shard int) (store.Time, error) {
	return read(ctx, e, "now", shard, store.Store.Now)
}

func (e *endpoint) Stats(ctx context.Context, shard int) (store.Stats, error) {
	return read(ctx, e, "stats", shard, store.Store.Stats)
}

func (e *endpoint) Workers(ctx context.Context, shard int) ([]store.Worker, error) {
	return read(ctx, e, "workers", shard, store.Store.Workers)
}

func (e *endpoint) Repair(ctx context.Context, shard int) (store.Repair, error) {
	return read(ctx, e, "repair", shard, store.Store.Repair)
}

func (e *endpoint) Check(ctx context.Context) (store.Health, error) {
	return read(ctx, e, "check", 0, func(st store.Store, ctx context.Context, _ int) (store.Health, error) { return st.Check(ctx) })
}

func (e *endpoint) Get(ctx context.Context, shard int, id string) (store.Entry, error) {
	return read(ctx, e, "get", shard, func(st store.Store, ctx context.Context, shard int) (store.Entry, error) {
		return st.Get(ctx, shard, id)
	})
}

func (e *endpoint) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (store.Page, error) {
	return read(ctx, e, "list", shard, func(st store.Store, ctx context.Context, shard int) (store.Page, error) {
		return st.List(ctx, shard, f, c, limit)
	})
}

// Wait passes the store's wake-ups on, until the connection breaks.
func (e *endpoint) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	e.standStill(time.Microsecond)
	r := e.nextRandom("wait", 0)
	if e.isCut() {
		return e.pause(ctx, upTo(r, time.Second), errBroken)
	}
	e.mu.Lock()
	broken := e.broken
	e.mu.Unlock()
	e.lock <- struct{}{}
	st := e.st
	<-e.lock
	waiting, end := context.WithCancel(ctx)
	defer end()
	e.underWay.Go(func() {
		select {
		case <-broken:
		case <-e.dead:
		case <-waiting.Done():
		}
		end()
	})
	err := st.Wait(waiting, shards, func(shard int) {
		if e.pause(waiting, upTo(r, time.Millisecond), nil) == nil {
			e.standStill(upTo(r, time.Microsecond))
			wake(shard)
		}
	})
	if isClosed(e.dead) || ctx.Err() != nil {
		return cmp.Or(err, errDied)
	}
	return e.pause(ctx, upTo(r, time.Millisecond), errBroken)
}
