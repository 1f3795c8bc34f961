package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

// A clientActor calls the methods of a Client, one after another.
type clientActor struct {
	*simulation
	name      string
	r         *rand.Rand
	client    *durable.Client
	calls     int
	bodies    int
	latest    int                     // the key of the latest call
	scheduled map[string]durable.Task // the latest task of each key
	versions  map[string]int64        // by id, as the client has seen them
}

const keys = 20

func (s *simulation) newClient(name string) *clientActor {
	return &clientActor{simulation: s, name: name, r: s.plan.random(name), client: s.server.connect(name, true).client,
		scheduled: make(map[string]durable.Task), versions: make(map[string]int64)}
}

// runClient plays a client actor until the calm ends.
func (s *simulation) runClient(name string) {
	c := s.newClient(name)
	for !isClosed(s.over) && s.phase.Load() < draining {
		pause := upTo(c.r, 250*time.Millisecond)
		if s.isCalm() {
			pause *= 4
		}
		s.sleep(pause)
		c.step()
	}
}

func (c *clientActor) key() string { return fmt.Sprint("k", c.r.IntN(keys)) }

// someKeys returns some different keys. The first one is often that of the call before.
func (c *clientActor) someKeys() (ids []string) {
	perm := c.r.Perm(keys)
	if chance(c.r, 20) {
		i := slices.Index(perm, c.latest)
		perm[0], perm[i] = perm[i], perm[0]
	}
	c.latest = perm[0]
	for _, i := range perm[:1+c.r.IntN(6)] {
		ids = append(ids, fmt.Sprint("k", i))
	}
	return ids
}

// when returns a random When for a task, and notes what the store must get.
func (c *clientActor) when(op *operation, id string) durable.When {
	d := upTo(c.r, randomOf(c.r, time.Microsecond, 100*time.Millisecond, 2*time.Second, 10*time.Second))
	if chance(c.r, 50) {
		at := time.Now().Add(d - 10*time.Millisecond)
		op.whens[id] = store.At(store.Time((at.UnixNano() + 999) / 1000))
		return durable.At(at)
	}
	op.whens[id] = store.After((d + 999*time.Nanosecond).Truncate(time.Microsecond))
	return durable.After(d)
}

// upTo returns a duration as the store keeps it: in microseconds.
func (c *clientActor) upTo(d time.Duration) time.Duration {
	return upTo(c.r, d).Truncate(time.Microsecond)
}

// content returns a task without a key and without a repetition.
func (c *clientActor) content() (t durable.Task) {
	r := c.r
	c.bodies++
	t.Handler, t.Body = randomOf(r, handlerNames...), fmt.Append(nil, c.name, "#", c.bodies)
	if chance(r, 40) {
		t.MaxAttempts = 1 + r.IntN(4)
	}
	if chance(r, 30) {
		t.Timeout = 50*time.Millisecond + c.upTo(3*time.Second)
	}
	if chance(r, 20) {
		t.Headers = map[string]string{"h": string(t.Body)}
	}
	for _, follow := range []**durable.Task{&t.OnSuccess, &t.OnFailure} {
		if chance(r, 10) {
			next := c.content()
			*follow = &next
		}
	}
	c.ledger.note(&t)
	return t
}

// task returns a task for a key, sometimes the same as before.
func (c *clientActor) task(key string, mustRepeat bool) durable.Task {
	r := c.r
	if t, ok := c.scheduled[key]; ok && chance(r, 25) && (repeats(&t) || !mustRepeat) {
		return t
	}
	t := c.content()
	if chance(r, 40) {
		t.Group = randomOf(r, "x", "y")
	}
	n := r.IntN(100)
	if mustRepeat {
		n = r.IntN(22)
	}
	switch {
	case n < 15:
		t.Every = 200*time.Millisecond + c.upTo(3*time.Second)
	case n < 20:
		t.Schedule = "s"
	case n < 22:
		t.Cron = "* * * * *"
	case n < 35:
		t.Unique = c.upTo(3 * time.Second)
	}
	if repeats(&t) && chance(r, 60) {
		t.Missed = randomOf(r, durable.LatestMissed, durable.FireMissed, durable.DeadMissed)
		if t.Missed == durable.DeadMissed {
			t.MissedAfter = time.Microsecond + c.upTo(time.Second)
		}
	}
	if repeats(&t) && chance(r, 30) {
		t.End = time.Now().Add(c.upTo(15 * time.Second)).Truncate(time.Microsecond).UTC()
		if t.Every > 0 && chance(r, 80) {
			t.Start = t.End.Add(-time.Duration(1+r.IntN(8)) * t.Every) // the last run is at End
		}
	}
	if chance(r, 20) {
		t.Retention = durable.Retention{For: c.upTo(5 * time.Second), Runs: r.IntN(4)}
	}
	c.ledger.note(&t)
	t.Key = key
	c.scheduled[key] = t
	return t
}

func repeats(t *durable.Task) bool { return t.Every > 0 || t.Schedule != "" || t.Cron != "" }

// options returns options for a Schedule.
func (c *clientActor) options() []durable.ScheduleOption {
	switch n := c.r.IntN(100); {
	case n < 5:
		return []durable.ScheduleOption{durable.Paused()}
	case n < 30:
		return []durable.ScheduleOption{randomOf(c.r, durable.OnlyNew(), durable.OnlyChanged(), durable.OnlyEarlier(), durable.OnlyLater())}
	}
	return nil
}

// version returns a version of a task for IfVersion, or sometimes 0.
func (c *clientActor) version(id string) int64 {
	if chance(c.r, 20) {
		return c.versions[id]
	}
	return 0
}

// saw records the version of a task, and compares its content with what was scheduled.
func (c *clientActor) saw(info *durable.Info) {
	if info.Version > 0 {
		c.versions[info.ID] = info.Version
	}
	if info.State == durable.Past || info.ID != info.Task.Key && info.Ended == nil {
		return
	}
	c.ledger.mu.Lock()
	want := c.ledger.contents[string(info.Task.Body)]
	c.ledger.mu.Unlock()
	got := info.Task
	if want.Key, got.Start, got.End = got.Key, got.Start.UTC(), got.End.UTC(); info.Ended != nil {
		want.Group = got.Group
	}
	if a, b := must(json.Marshal(got)), must(json.Marshal(want)); string(a) != string(b) {
		c.fail("content", "a task is %s, and was scheduled as %s", a, b)
	}
}

// change calls a method that changes tasks, sends it again while the outcome is unknown,
// and has the ledger check the answer. Sometimes it sends other calls in between.
func (c *clientActor) change(name string, op *operation, ids []string, f func(ctx context.Context) ([]durable.Outcome, error)) {
	c.calls++
	op.name, op.done = fmt.Sprint(c.name, " ", c.calls, ": ", name), make(map[string]durable.Outcome)
	timeout, settled := upTo(c.r, randomOf(c.r, 5*time.Millisecond, 300*time.Millisecond, 4*time.Second)), c.settled()
	again, pause := c.r.IntN(5), upTo(c.r, 2*time.Second)
	if c.isCalm() {
		timeout = 20 * time.Second
	}
	var out []durable.Outcome
	var err error
	for i := range again + 1 {
		ctx, cancel := context.WithTimeout(context.WithValue(background, operationKey{}, op), timeout+time.Duration(i)*pause)
		out, err = f(ctx)
		cancel()
		var unknown *durable.UnknownError
		if !errors.As(err, &unknown) || i == again {
			break
		}
		f = unknown.Again
		if time.Sleep(pause); chance(c.r, 50) {
			c.step()
		}
	}
	c.trace(c.name, "%s of %q: %v, %v", op.name, ids, out, err)
	if err != nil && settled && !errors.Is(err, errDied) || errors.Is(err, durable.ErrInvalid) || errors.Is(err, store.ErrStale) {
		c.fail("call failed", "%s of %q: %v", op.name, ids, err)
	}
	c.ledger.answered(op, ids, out, err)
}

// one returns a single outcome as those of a batch.
func one(o durable.Outcome, err error) ([]durable.Outcome, error) { return []durable.Outcome{o}, err }

// step calls a random method.
func (c *clientActor) step() {
	switch n := c.r.IntN(100); {
	case n < 45:
		c.schedule()
	case n < 75:
		c.changeSome()
	default:
		c.manage()
	}
}

// schedule calls a method that schedules tasks.
func (c *clientActor) schedule() {
	n, ids, opts, op := c.r.IntN(45), c.someKeys(), c.options(), &operation{whens: make(map[string]store.When)}
	if n < 33 {
		ids = ids[:1]
		if op.version = c.version(ids[0]); op.version > 0 {
			opts = append(opts, durable.IfVersion(op.version))
		}
	}
	var items []durable.Item
	for _, id := range ids {
		x := durable.Item{Task: c.task(id, n >= 41), When: durable.Next()}
		if !repeats(&x.Task) || chance(c.r, 50) {
			x.When = c.when(op, id)
		}
		items = append(items, x)
	}
	switch {
	case n < 33:
		c.change("Schedule", op, ids, func(ctx context.Context) ([]durable.Outcome, error) {
			return one(c.client.Schedule(ctx, items[0].Task, items[0].When, opts...))
		})
	case n < 41:
		c.change("ScheduleBatch", op, ids, func(ctx context.Context) ([]durable.Outcome, error) {
			return c.client.ScheduleBatch(ctx, items, opts...)
		})
	default:
		c.sync(op, ids, items)
	}
}

// sync syncs a set of repeating tasks.
func (c *clientActor) sync(op *operation, ids []string, items []durable.Item) {
	set, version := randomOf(c.r, "set0", "set1"), int64(c.r.IntN(4))
	op.repeats = true
	var synced durable.Synced
	var syncErr error
	c.change("Sync", op, ids, func(ctx context.Context) ([]durable.Outcome, error) {
		synced, syncErr = c.client.Sync(ctx, set, version, items)
		return synced.Outcomes, syncErr
	})
	if syncErr == nil && synced.Superseded != op.superseded {
		c.fail("outcome", "%s with version %d of %s: %+v", op.name, version, set, synced)
	}
	for i, o := range synced.Outcomes {
		if o == durable.Moved && items[i].Task.Every > 0 {
			c.fail("phase", "%s has moved %+v", op.name, items[i])
		}
	}
}

// deadLetters returns the ids of some dead letters.
func (c *clientActor) deadLetters() (ids []string) {
	ctx, cancel := context.WithTimeout(background, 3*time.Second)
	defer cancel()
	p, err := c.client.Page(ctx, durable.Filter{State: durable.Dead}, "", 1+c.r.IntN(5))
	if err != nil {
		return nil
	}
	for i := range p.Tasks {
		c.saw(&p.Tasks[i])
		ids = append(ids, p.Tasks[i].ID)
	}
	return ids
}

// changeSome calls a method that changes one task or several.
func (c *clientActor) changeSome() {
	ids, client, op := c.someKeys(), c.client, &operation{whens: make(map[string]store.When)}
	if chance(c.r, 30) {
		client = c.sharedEnd().client
	}
	if dead := c.deadLetters(); len(dead) > 0 && chance(c.r, 40) {
		ids = dead
	}
	var moves []durable.Move
	for _, id := range ids {
		moves = append(moves, durable.Move{ID: id, When: c.when(op, id)})
	}
	id, when := ids[0], moves[0].When
	var opts []durable.ChangeOption
	if op.version = c.version(id); op.version > 0 {
		opts = append(opts, durable.IfVersion(op.version))
	}
	type method struct {
		name string
		call func(ctx context.Context) ([]durable.Outcome, error)
	}
	m := randomOf(c.r,
		method{"CancelBatch", func(ctx context.Context) ([]durable.Outcome, error) { return client.CancelBatch(ctx, ids) }},
		method{"RescheduleBatch", func(ctx context.Context) ([]durable.Outcome, error) { return client.RescheduleBatch(ctx, moves) }},
		method{"RequeueBatch", func(ctx context.Context) ([]durable.Outcome, error) { return client.RequeueBatch(ctx, moves) }},
		method{"PurgeBatch", func(ctx context.Context) ([]durable.Outcome, error) { return client.PurgeBatch(ctx, ids) }},
		method{"Cancel", func(ctx context.Context) ([]durable.Outcome, error) { return one(client.Cancel(ctx, id, opts...)) }},
		method{"Reschedule", func(ctx context.Context) ([]durable.Outcome, error) {
			return one(client.Reschedule(ctx, id, when, opts...))
		}},
		method{"Requeue", func(ctx context.Context) ([]durable.Outcome, error) {
			return one(client.Requeue(ctx, id, when, opts...))
		}},
		method{"Purge", func(ctx context.Context) ([]durable.Outcome, error) { return one(client.Purge(ctx, id, opts...)) }},
		method{"PauseTask", func(ctx context.Context) ([]durable.Outcome, error) { return one(client.PauseTask(ctx, id, opts...)) }},
		method{"ResumeTask", func(ctx context.Context) ([]durable.Outcome, error) { return one(client.ResumeTask(ctx, id, opts...)) }},
	)
	if strings.HasSuffix(m.name, "Batch") {
		op.version = 0
	} else {
		ids = ids[:1]
	}
	if m.name == "ResumeTask" {
		op.whens = nil // it may reschedule the task to another time
	}
	c.change(m.name, op, ids, m.call)
}

// manage calls one of the other methods. Only faults may make it fail.
func (c *clientActor) manage() {
	client, key, handler, settled := c.client, c.key(), randomOf(c.r, handlerNames...), c.settled()
	ctx, cancel := context.WithTimeout(background, 3*time.Second)
	defer cancel()
	var err error
	switch n := c.r.IntN(20); n {
	case 0:
		err = client.Pause(ctx)
		c.sleep(upTo(c.r, time.Second))
	case 1, 2:
		err = client.Resume(ctx)
	case 3:
		err = client.PauseHandler(ctx, handler, key)
	case 4, 5:
		err = client.ResumeHandler(ctx, handler)
	case 6, 7, 8, 9:
		rate := randomOf(c.r, 0, 0, 0, 5, 50.0)
		limit := randomOf(c.r, durable.Limit{}, durable.Limit{Concurrency: c.r.IntN(4), Rate: rate}, durable.Limit{GroupConcurrency: c.r.IntN(3), GroupRate: rate})
		if c.shards == 1 {
			err = client.SetLimit(ctx, handler, limit)
		}
	case 10, 11, 12:
		var info durable.Info
		if info, err = client.Get(ctx, key); err == nil {
			c.saw(&info)
		}
	case 13, 14, 15:
		for info, listErr := range client.List(ctx, durable.Filter{Prefix: "k1"}) {
			if err = listErr; err == nil {
				c.saw(&info)
			}
		}
	case 16, 17:
		_, err = client.RequeueAll(ctx, durable.Filter{Handler: handler}, durable.After(0))
	case 18:
		_, err = client.PurgeAll(ctx, durable.Filter{Handler: handler})
	case 19:
		var rep durable.Repair
		if rep, err = client.Repair(ctx); rep.Requeued+rep.Doubled+rep.Orphaned > 0 {
			c.fail("repair", "Repair has corrected %+v", rep)
		}
	}
	c.trace(c.name, "manages %s, %q: %v", handler, key, err)
	if err != nil && settled && !errors.Is(err, durable.ErrNotFound) {
		c.fail("call failed", "a call of %s fails in calm: %v", c.name, err)
	}
}

// rush schedules more slow tasks than there are places, and then short ones of another handler.
func (c *clientActor) rush() {
	var items []durable.Item
	for i := range 60 {
		t, when := durable.Task{Key: fmt.Sprint("slow", i), Handler: randomOf(c.r, handlerNames[1:]...), Timeout: time.Hour}, durable.After(0)
		if i >= 45 {
			t.Key, t.Handler, when = fmt.Sprint("short", i), handlerNames[0], durable.After(time.Second)
		}
		t.Body = []byte(t.Key)
		c.ledger.note(&t)
		items = append(items, durable.Item{Task: t, When: when})
	}
	if _, err := c.client.ScheduleBatch(background, items); err != nil {
		c.fail("call failed", "a batch fails in calm: %v", err)
	}
}

// tidy ends pauses and limits, and cancels all tasks.
func (c *clientActor) tidy() {
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	err := c.client.Resume(ctx)
	for _, h := range handlerNames {
		err = errors.Join(err, c.client.ResumeHandler(ctx, h))
		if c.shards == 1 {
			err = errors.Join(err, c.client.SetLimit(ctx, h, durable.Limit{}))
		}
	}
	client := c.sharedEnd().client
	for _, state := range []durable.State{durable.Pending, durable.Running} {
		_, cancelErr := client.CancelAll(ctx, durable.Filter{State: state})
		err = errors.Join(err, cancelErr)
	}
	if err != nil && !errors.Is(err, errDied) {
		c.fail("call failed", "tidying up fails in calm: %v", err)
	}
}
