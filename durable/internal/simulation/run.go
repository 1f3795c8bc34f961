package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

// An Opener opens the store of a simulation.
type Opener struct {
	// Open returns an empty store with up to the given number of shards. The clock
	// implements clock.Wall.
	Open func(c clock.Clock, shards int) (store.Store, error)
	// Reopen closes the store and opens it again. Nil means that the store does not
	// outlive its process: it is only out of reach for a while.
	Reopen func(st store.Store, c clock.Clock) (store.Store, error)
	// Close closes the store.
	Close func(st store.Store)
	// MaxShards is the largest number of shards.
	MaxShards int
	// CompareEvery is after how many commands all data is compared with the model.
	CompareEvery int
}

// A Result is how a simulation has ended.
type Result struct {
	Failure string // what was wrong first; empty: nothing
	Kind    string // of the failure
	Trace   []string
	Storm   time.Duration // how long the storm was
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// A simulation is one run of a plan.
type simulation struct {
	plan        *Plan
	opener      *Opener
	shards      int
	server      *server
	ledger      *ledger
	underWay    sync.WaitGroup // messages
	began       time.Time
	phase       atomic.Int32
	calmSince   time.Time // set before the phase calm
	clockWasSet atomic.Bool
	calmBegins  chan struct{} // closed in the phase calm
	over        chan struct{} // closed when all work has ended
	overOnce    sync.Once

	mu     sync.Mutex
	result Result

	sharing sync.Mutex
	shared  *endpoint
	shares  int
}

// The phases of a simulation.
const (
	storming int32 = iota
	settling       // the faults have ended
	calm           // their effects too
	draining       // clients send nothing more
)

// Run plays a plan. The same plan gives the same trace, unless goroutines run at the same
// time, as with -short.
func Run(t *testing.T, p Plan, o Opener) (result Result) {
	if !testing.Short() {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		// The collector's goroutines would change the order of the others.
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		runtime.GC()
	}
	var s *simulation
	alarm := time.AfterFunc(10*time.Minute, func() {
		panic("a goroutine spins, without an end of time; to play it again: " + p.Command())
	})
	defer alarm.Stop()
	defer func() {
		if v := recover(); v != nil { // from a bubble whose goroutines are all blocked
			s.fail("deadlock", "%v", v)
		}
		result = s.finished()
	}()
	synctest.Test(t, func(t *testing.T) {
		r := p.random("shards")
		s = &simulation{plan: &p, opener: &o, shards: min(o.MaxShards, randomOf(r, 1, 1, 2, 4)), over: make(chan struct{}), calmBegins: make(chan struct{}), began: time.Now()}
		s.ledger = &ledger{simulation: s, running: make(map[store.Lease]*execution), attempts: make(map[store.Lease]*execution),
			contents: make(map[string]durable.Task), doneRuns: make(map[string]bool), waits: make(map[string]time.Time)}
		s.play()
	})
	return result
}

func (s *simulation) play() {
	var servers [2]*server // the second one gets a copy
	for i := range servers {
		var err error
		if servers[i], err = s.newServer(); err != nil {
			s.fail("open", "%v", err)
			return
		}
		defer func() {
			s.underWay.Wait()
			s.opener.Close(servers[i].st)
		}()
	}
	s.server = servers[0]
	r := s.plan.random("plan")
	storm := 3*time.Second + upTo(r, 15*time.Second)
	if s.plan.Storm > 0 {
		storm = s.plan.Storm
	}
	s.result.Storm = storm
	workers, clients := 1+r.IntN(maxWorkers), 1+r.IntN(maxClients)
	var actors sync.WaitGroup
	start := func(kind string, n int, run func(name string)) {
		for i := range n {
			if name := fmt.Sprint(kind, i); s.plan.has(name) {
				actors.Go(func() { run(name) })
			}
		}
	}
	start("worker", workers, s.runWorker)
	start("client", clients, s.runClient)
	start("copy", 1, func(name string) { s.copyTo(servers[1], name) })
	actors.Go(s.runWeather)
	s.sleep(storm)
	s.settle()
	s.watchCalm(10*time.Second + upTo(r, 5*time.Second))
	s.drain()
	s.endNow()
	actors.Wait()
	for _, e := range s.server.ends {
		e.kill()
	}
	s.underWay.Wait()
	for _, x := range servers {
		x.compareAll()
	}
}

// copyTo exports the store several times during the storm, and imports the last file into
// another store, again after each error.
func (s *simulation) copyTo(dst *server, name string) {
	r := s.plan.random(name)
	var file bytes.Buffer
	var want []store.Entry
	exported := 0
	for range 20 {
		s.sleep(upTo(r, time.Second))
		_ = s.server.withShard(0, func(_ *storetest.Judge, now store.Time) {
			file.Reset()
			want = nil
			for _, j := range s.server.judges {
				want = append(want, slices.DeleteFunc(j.Entries(), func(e store.Entry) bool { return !e.Continues() || e.HasExpired(now) })...)
			}
			exported = must(durable.Export(background, &file, s.server.st))
			clockWasSet := slices.ContainsFunc(s.server.offsets, func(d time.Duration) bool { return d != s.server.clock.offsetNow() })
			if exported < len(want) || exported > len(want) && !clockWasSet { // an entry that had expired may be there again
				s.fail("export", "%d tasks were exported, of %d", exported, len(want))
			}
		})
	}
	end := dst.connect(name, true)
	total := 0
	for !isClosed(s.over) {
		got, err := durable.Import(background, end, bytes.NewReader(file.Bytes()))
		s.trace(name, "imports %d tasks: %+v, %v", exported, got, err)
		total += got.Added
		switch {
		case err == nil && (got.Refused > 0 || got.Added+got.Kept != exported || total > exported):
			s.fail("import", "of %d tasks, %+v were added, %d in all", exported, got, total)
		case err == nil:
			s.compareCopy(dst, want)
			return
		case s.settled() && !errors.Is(err, errDied):
			s.fail("call failed", "Import fails in calm: %v", err)
		}
		s.sleep(upTo(r, time.Second))
	}
}

// compareCopy compares the tasks of a store with those that it got.
func (s *simulation) compareCopy(dst *server, want []store.Entry) {
	copied := make(map[string]store.Entry)
	for shard := range dst.judges {
		_ = dst.withShard(shard, func(*storetest.Judge, store.Time) {
			for _, e := range dst.list(shard, store.Filter{}) {
				copied[e.ID] = e
			}
		})
	}
	for _, e := range want {
		got := copied[e.ID]
		x := e.WithoutAttempt(got.At)
		x.Version, x.Suspect, x.HandlerPaused = got.Version, got.Suspect, got.HandlerPaused
		if !reflect.DeepEqual(got, x) && !(e.State == store.Past && got.ID == "") { // it may have expired
			s.fail("import", "%+v became %+v", e, got)
		}
	}
}

// runWeather makes faults that last: partitions, standstills, restarts and clock steps.
func (s *simulation) runWeather() {
	r := s.plan.random("weather")
	for !isClosed(s.over) {
		s.sleep(upTo(r, 3*time.Second))
		fault, lasts, target := randomOf(r, partition, partition, hold, hold, reopen, step), upTo(r, 8*time.Second), r.Int()
		back := chance(r, 50)
		s.mu.Lock()
		ends := s.server.ends
		s.mu.Unlock()
		if !s.on(fault) || len(ends) == 0 {
			continue
		}
		e := ends[len(ends)-1-target%min(len(ends), maxWorkers+maxClients)] // the older ones are dead
		switch fault {
		case partition:
			s.trace(e.name, "is cut off for %v", lasts)
			e.breakUp(lasts)
		case hold:
			s.trace(e.name, "stands still for %v", lasts)
			e.hold(lasts)
		case reopen:
			s.server.restart(lasts / 4)
		case step:
			d := lasts * 10
			if back {
				d = -d
			}
			s.trace("store", "its clock is set by %v", d)
			s.clockWasSet.Store(true)
			s.server.clock.set(d)
		}
	}
}

// settle ends the faults, and waits until their effects have ended.
func (s *simulation) settle() {
	s.trace("simulation", "the storm is over")
	s.phase.Store(settling)
	// Messages take up to 12 s. After a step of the clock, workers claim within a minute.
	d := 20 * time.Second
	if s.clockWasSet.Load() {
		d = 90 * time.Second
	}
	s.sleep(d)
	s.calmSince = time.Now()
	s.phase.Store(calm)
	s.ledger.checkCalm()
	close(s.calmBegins)
	s.trace("simulation", "calm")
}

func (s *simulation) watchCalm(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until) && !s.hasFailed(); {
		s.sleep(250*time.Millisecond + 7*time.Nanosecond)
		s.ledger.checkCalm()
	}
}

// drain cancels all tasks, and waits until they have ended.
func (s *simulation) drain() {
	s.phase.Store(draining)
	s.watchCalm(6 * time.Second) // without clients, whose commands wake workers
	c := s.newClient("tidy")
	c.tidy()
	c.rush()
	s.watchCalm(4 * time.Second)
	for range 15 {
		if s.hasFailed() {
			return
		}
		c.tidy()
		s.watchCalm(2 * time.Second)
		if len(s.unfinished()) == 0 {
			return
		}
	}
	s.fail("stuck", "tasks that were cancelled do not end: %+v", s.unfinished())
}

// unfinished returns the tasks that are pending or running.
func (s *simulation) unfinished() (left []store.Entry) {
	for shard := range s.shards {
		_ = s.server.withShard(shard, func(j *storetest.Judge, _ store.Time) {
			left = append(left, slices.DeleteFunc(j.Entries(), func(e store.Entry) bool { return e.State > store.Running })...)
		})
	}
	return left
}

// on reports whether a fault may happen now.
func (s *simulation) on(fault string) bool { return !s.isCalm() && s.plan.has(fault) }

func (s *simulation) isCalm() bool { return s.phase.Load() >= settling }

func (s *simulation) settled() bool { return s.phase.Load() >= calm }

func (s *simulation) endNow() { s.overOnce.Do(func() { close(s.over) }) }

// sleep sleeps for d, or until the end.
func (s *simulation) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.over:
	}
}

func (s *simulation) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.result.Failure != ""
}

// fail records the first failure, and ends the simulation.
func (s *simulation) fail(kind, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.result.Failure == "" {
		s.result.Kind, s.result.Failure = kind, kind+": "+fmt.Sprintf(format, args...)
		s.endNow()
	}
}

// trace records an event of an actor.
func (s *simulation) trace(actor, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.result.Failure == "" {
		s.result.Trace = append(s.result.Trace, fmt.Sprintf("%13.9f %-12s %s", time.Since(s.began).Seconds(), actor, text))
	}
}

// finished returns the result, with the events of each moment in order.
func (s *simulation) finished() Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.result.Trace, strings.Compare)
	return s.result
}
