package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A sleeper is a worker that claims when it is woken, or when the answer to its last
// claim told it to. Workers of package durable do the same.
type sleeper struct {
	b        *bench
	handlers []string
	stamp    store.Stamp
	woken    chan struct{}
	at       store.Time // when the sleeper claims next; zero: when it is woken
	got      int        // tasks that the sleeper has claimed
}

// sleeper starts a sleeper. The returned function ends it.
func (b *bench) sleeper(name string, handlers ...string) (s *sleeper, end func()) {
	s = &sleeper{b: b, handlers: handlers, stamp: store.Stamp{Sender: name}, woken: make(chan struct{}, 1)}
	waiting, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		_ = b.Store.Wait(waiting, []int{0}, func(int) {
			select {
			case s.woken <- struct{}{}:
			default:
			}
		})
	})
	return s, func() { cancel(); all.Wait() }
}

// claim claims up to n tasks.
func (s *sleeper) claim(n int) {
	s.b.Helper()
	r := s.b.claimOf(n)
	r.Claim.Handlers, r.Lease = s.handlers, time.Hour
	a := s.do(r)
	if s.at = 0; a.Next >= 0 {
		s.at = a.Now.Add(a.Next)
	}
	s.got += len(a.Tasks)
}

func (s *sleeper) do(r store.Round) store.Answer {
	s.b.Helper()
	s.stamp.Number++
	a, err := s.b.Store.Do(ctx, 0, s.stamp, r)
	s.b.noError(err)
	return a
}

// step claims if the sleeper was woken or its time has come.
func (s *sleeper) step() {
	s.b.Helper()
	select {
	case <-s.woken:
	default:
		if s.at == 0 || s.b.now() < s.at {
			return
		}
	}
	s.claim(store.MaxClaim)
}

// waitFor lets the sleepers claim until the first one has got n tasks and is no longer
// woken.
func waitFor(what string, n int, s ...*sleeper) {
	b := s[0].b
	b.Helper()
	late := time.Now().Add(patience)
	for quiet := 0; quiet < 5; {
		b.require(time.Now().Before(late), "%s: nobody comes", what)
		for _, s := range s {
			s.step()
		}
		if time.Sleep(500 * time.Microsecond); s[0].got >= n {
			quiet++
		}
	}
	equal(b, what+": claimed", s[0].got, n)
}

// testSleepers lets one worker sleep while another worker has more due tasks than it
// claims at once. Tasks that only the sleeper can run must still run in time.
func testSleepers(b *bench) {
	if a := b.do(b.claimOf(1)); a.Next >= 0 {
		b.Skip("workers look now and then, although nothing is there: a wake-up may be late by that")
	}
	put := func(handler string, from, n int, w store.When) {
		b.Helper()
		items := make([]store.Item, n)
		for i := range items {
			id := fmt.Sprint(handler, from+i)
			items[i] = store.Item{ID: id, When: w, Task: store.Task{ID: id, Handler: handler}}
		}
		b.change(store.Command{Op: store.Schedule, Items: items})
	}
	s, end := b.sleeper("sleeper", "a")
	defer end()
	other, leave := b.sleeper("other", "b")
	defer leave()
	// claimOne lets the other worker claim one of its due tasks while s sleeps. The
	// answer must say that the other worker should claim again at once.
	part := func() {
		b.Helper()
		waitFor("nothing", s.got, s)
		n := other.got
		other.claim(1)
		equal(b, "claimed", other.got, n+1)
		b.require(other.at != 0 && other.at <= b.now(), "a task is left, and Next is not zero")
	}
	finish := func(n int) {
		b.Helper()
		other.at = b.now()
		waitFor("what is left", n, other)
	}

	put("b", 0, 5, b.after(0))
	part()
	put("a", 0, 1, b.after(0))
	waitFor("at once", 1, s, other)
	finish(5)

	put("b", 10, 5, b.after(0))
	part()
	put("a", 1, 1, b.after(10))
	finish(10)
	b.sleep(10)
	waitFor("later", 2, s, other)

	// There are more due tasks than a store may read at once, and one task for later.
	for i := range 3 {
		put("b", 100+100*i, 100, b.after(0))
	}
	put("b", 1000, 1, b.after(20))
	part()
	finish(310)
	put("a", 2, 1, b.after(30))
	b.sleep(20)
	waitFor("behind all", 311, other, s)
	b.sleep(10)
	waitFor("later than what was behind", 3, s, other)

	// The other worker leaves while tasks are due.
	put("b", 2000, 5, b.after(0))
	part()
	put("a", 3, 1, b.after(10))
	r := b.round()
	r.Leave = true
	other.do(r)
	leave()
	b.sleep(10)
	waitFor("when the other one has left", 4, s)
}
