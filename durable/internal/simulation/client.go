package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tickless/tickless/durable"
)

// A clientActor calls the methods of a Client, one after another.
type clientActor struct {
	*simulation
	name   string
	r      *rand.Rand
	client *durable.Client
	calls  int
}

const keys = 20

func (s *simulation) newClient(name string) *clientActor {
	return &clientActor{simulation: s, name: name, r: s.plan.random(name), client: durable.New(s.connect(name), s.clientOptions(true)...)}
}

// runClient plays a client actor until the calm ends.
func (s *simulation) runClient(name string) {
	c := s.newClient(name)
	for !s.isOver() && !s.drains.Load() {
		pause := upTo(c.r, 250*time.Millisecond)
		if s.isCalm() {
			pause *= 4
		}
		s.sleep(pause)
		c.step()
	}
}

func (c *clientActor) key() string { return fmt.Sprint("k", c.r.IntN(keys)) }

// keys returns some different keys.
func (c *clientActor) someKeys() (ids []string) {
	for _, i := range c.r.Perm(keys)[:1+c.r.IntN(6)] {
		ids = append(ids, fmt.Sprint("k", i))
	}
	return ids
}

func (c *clientActor) when() durable.When {
	d := upTo(c.r, randomOf(c.r, time.Microsecond, 100*time.Millisecond, 2*time.Second, 10*time.Second))
	if c.r.IntN(2) == 0 {
		return durable.At(time.Now().Add(d - 10*time.Millisecond))
	}
	return durable.After(d)
}

func (c *clientActor) task(key string) durable.Task {
	r := c.r
	t := durable.Task{Key: key, Handler: randomOf(r, handlerNames[:4]...), Body: []byte(key)}
	if chance(r, 3) {
		t.Handler = "rare"
	}
	if chance(r, 40) {
		t.MaxAttempts = 1 + r.IntN(4)
	}
	if chance(r, 30) {
		t.Timeout = 50*time.Millisecond + upTo(r, 3*time.Second)
	}
	if chance(r, 20) {
		t.Headers = map[string]string{"h": key}
	}
	switch n := r.IntN(100); {
	case n < 15:
		t.Every = 200*time.Millisecond + upTo(r, 3*time.Second)
	case n < 20:
		t.Schedule = "s"
	case n < 22:
		t.Cron = "* * * * *"
	case n < 35:
		t.Unique = upTo(r, 3*time.Second)
	}
	if repeats := t.Every > 0 || t.Schedule != "" || t.Cron != ""; repeats && chance(r, 60) {
		t.Missed = randomOf(r, durable.LatestMissed, durable.FireMissed, durable.DeadMissed)
		if t.Missed == durable.DeadMissed {
			t.MissedAfter = upTo(r, time.Second)
		}
		if chance(r, 30) {
			t.End = time.Now().Add(upTo(r, 30*time.Second))
		}
	}
	if chance(r, 20) {
		t.Retention = durable.Retention{For: upTo(r, 5*time.Second), Runs: r.IntN(4)}
	}
	return t
}

func (c *clientActor) options() []durable.ScheduleOption {
	if chance(c.r, 60) {
		return nil
	}
	if c.r.IntN(8) == 0 {
		return []durable.ScheduleOption{durable.Paused()}
	}
	return []durable.ScheduleOption{randomOf(c.r, durable.OnlyNew(), durable.OnlyChanged(), durable.OnlyEarlier(), durable.OnlyLater())}
}

// change calls a method that changes tasks, sends it again while the outcome is unknown,
// and has the ledger check the answer.
func (c *clientActor) change(name string, ids []string, f func(ctx context.Context) ([]durable.Outcome, error)) {
	c.calls++
	op := &operation{name: fmt.Sprint(c.name, " ", c.calls, ": ", name), done: make(map[string]durable.Outcome)}
	timeout := upTo(c.r, randomOf(c.r, 5*time.Millisecond, 300*time.Millisecond, 4*time.Second))
	again, pause := c.r.IntN(5), upTo(c.r, 2*time.Second)
	if c.isCalm() {
		timeout = 20 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), operationKey{}, op), timeout)
	out, err := f(ctx)
	cancel()
	for i := range again {
		var unknown *durable.UnknownError
		if !errors.As(err, &unknown) {
			break
		}
		time.Sleep(pause)
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), operationKey{}, op), timeout+time.Duration(i)*pause)
		out, err = unknown.Again(ctx)
		cancel()
	}
	c.trace(c.name, "%s of %q: %v, %v", name, ids, out, err)
	if errors.Is(err, durable.ErrInvalid) {
		return
	}
	c.ledger.answered(op, ids, out, err)
}

func (c *clientActor) changeOne(name, id string, f func(ctx context.Context) (durable.Outcome, error)) {
	c.change(name, []string{id}, func(ctx context.Context) ([]durable.Outcome, error) {
		o, err := f(ctx)
		return []durable.Outcome{o}, err
	})
}

// step calls a random method.
func (c *clientActor) step() {
	key, when, client := c.key(), c.when(), c.client
	switch n := c.r.IntN(100); {
	case n < 35:
		t, opts := c.task(key), c.options()
		if (t.Every > 0 || t.Schedule != "" || t.Cron != "") && chance(c.r, 50) {
			when = durable.Next()
		}
		c.changeOne("Schedule", key, func(ctx context.Context) (durable.Outcome, error) { return client.Schedule(ctx, t, when, opts...) })
	case n < 45:
		ids, opts := c.someKeys(), c.options()
		var items []durable.Item
		for _, id := range ids {
			items = append(items, durable.Item{Task: c.task(id), When: c.when()})
		}
		c.change("ScheduleBatch", ids, func(ctx context.Context) ([]durable.Outcome, error) { return client.ScheduleBatch(ctx, items, opts...) })
	case n < 52:
		c.changeOne("Cancel", key, func(ctx context.Context) (durable.Outcome, error) { return client.Cancel(ctx, key) })
	case n < 59:
		c.changeOne("Reschedule", key, func(ctx context.Context) (durable.Outcome, error) { return client.Reschedule(ctx, key, when) })
	case n < 65:
		c.changeBatch()
	case n < 75:
		c.changeDead()
	default:
		c.manage(key)
	}
}

// changeBatch cancels or moves several tasks.
func (c *clientActor) changeBatch() {
	ids := c.someKeys()
	if chance(c.r, 50) {
		c.change("CancelBatch", ids, func(ctx context.Context) ([]durable.Outcome, error) { return c.client.CancelBatch(ctx, ids) })
		return
	}
	var moves []durable.Move
	for _, id := range ids {
		moves = append(moves, durable.Move{ID: id, When: c.when()})
	}
	c.change("RescheduleBatch", ids, func(ctx context.Context) ([]durable.Outcome, error) { return c.client.RescheduleBatch(ctx, moves) })
}

// changeDead requeues or purges dead letters that it finds in a list.
func (c *clientActor) changeDead() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	p, err := c.client.Page(ctx, durable.Filter{State: durable.Dead}, "", 1+c.r.IntN(5))
	cancel()
	kind, when := c.r.IntN(4), c.when()
	if err != nil || len(p.Tasks) == 0 {
		return
	}
	var ids []string
	var moves []durable.Move
	for _, t := range p.Tasks {
		ids, moves = append(ids, t.ID), append(moves, durable.Move{ID: t.ID, When: when})
	}
	switch kind {
	case 0:
		c.changeOne("Requeue", ids[0], func(ctx context.Context) (durable.Outcome, error) { return c.client.Requeue(ctx, ids[0], when) })
	case 1:
		c.change("RequeueBatch", ids, func(ctx context.Context) ([]durable.Outcome, error) { return c.client.RequeueBatch(ctx, moves) })
	case 2:
		c.changeOne("Purge", ids[0], func(ctx context.Context) (durable.Outcome, error) { return c.client.Purge(ctx, ids[0]) })
	case 3:
		c.change("PurgeBatch", ids, func(ctx context.Context) ([]durable.Outcome, error) { return c.client.PurgeBatch(ctx, ids) })
	}
}

// manage calls one of the other methods. Only faults may make it fail.
func (c *clientActor) manage(key string) {
	client := c.client
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	settled := c.settled.Load()
	n, handler := c.r.IntN(22), randomOf(c.r, handlerNames[:4]...)
	limit := durable.Limit{Concurrency: c.r.IntN(4), Rate: randomOf(c.r, 0, 0, 0, 5, 50.0)}
	var err error
	switch n {
	case 0, 1, 2:
		_, err = client.PauseTask(ctx, key)
	case 3, 4, 5:
		_, err = client.ResumeTask(ctx, key)
	case 6:
		if err = client.Pause(ctx); err == nil {
			c.sleep(upTo(c.r, time.Second))
		}
	case 7, 8:
		err = client.Resume(ctx)
	case 9, 16, 17, 18:
		if c.shards == 1 {
			err = client.SetLimit(ctx, handler, limit)
		}
	case 19:
		err = client.PauseHandler(ctx, handler, "note")
	case 20, 21:
		err = client.ResumeHandler(ctx, handler)
	case 10:
		_, err = client.Get(ctx, key)
	case 11:
		_, err = client.Runs(ctx, key)
	case 12:
		for _, err = range client.List(ctx, durable.Filter{Prefix: "k1"}) {
		}
	case 13:
		_, err = client.RequeueAll(ctx, durable.Filter{Handler: handler}, durable.After(0))
	case 14:
		_, err = client.PurgeAll(ctx, durable.Filter{Handler: handler})
	case 15:
		var rep durable.Repair
		if rep, err = client.Repair(ctx); rep.Requeued+rep.Doubled+rep.Orphaned > 0 {
			c.fail("repair", "Repair has corrected %+v", rep)
		}
	}
	c.trace(c.name, "manages (%d) %q: %v", n, key, err)
	if err != nil && settled && !errors.Is(err, durable.ErrInvalid) && !errors.Is(err, durable.ErrNotFound) {
		c.fail("call failed", "call %d of %s fails in calm: %v", n, c.name, err)
	}
}

// tidy ends pauses, limits and repeating tasks, so that all work can end.
func (c *clientActor) tidy() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := c.client.Resume(ctx)
	for _, h := range handlerNames {
		err = errors.Join(err, c.client.ResumeHandler(ctx, h))
	}
	if c.shards == 1 {
		for _, h := range handlerNames {
			err = errors.Join(err, c.client.SetLimit(ctx, h, durable.Limit{}))
		}
	}
	for info, listErr := range c.client.List(ctx, durable.Filter{}) {
		if err = errors.Join(err, listErr); info.Task.Every > 0 || info.Task.Cron != "" || info.Task.Schedule != "" || info.Following {
			if info.State != durable.Dead {
				_, cancelErr := c.client.Cancel(ctx, info.ID)
				err = errors.Join(err, cancelErr)
			}
		} else if info.Paused {
			_, resumeErr := c.client.ResumeTask(ctx, info.ID)
			err = errors.Join(err, resumeErr)
		}
	}
	if err != nil {
		c.fail("call failed", "tidying up fails in calm: %v", err)
	}
}
