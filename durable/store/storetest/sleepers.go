package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A sleeper is a worker that claims only when it is woken, or when the Next of its last
// answer has passed. Workers of package durable do the same.
type sleeper struct {
	b            *storeTest
	handlers     []string
	stamp        store.Stamp
	woken        chan struct{}
	nextClaimAt  store.Time // zero if only a wake-up makes the sleeper claim
	claimedCount int        // tasks that the sleeper has claimed
}

// startSleeper starts a sleeper with this name. end stops the sleeper.
func (b *storeTest) startSleeper(name string, handlers ...string) (s *sleeper, end func()) {
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
	r := s.b.claimRound(n)
	r.Claim.Handlers, r.Lease = s.handlers, time.Hour
	a := s.sendRound(r)
	if s.nextClaimAt = 0; a.Next >= 0 {
		s.nextClaimAt = a.Now.Add(a.Next)
	}
	s.claimedCount += len(a.Tasks)
}

func (s *sleeper) sendRound(r store.Round) store.Answer {
	s.b.Helper()
	s.stamp.Number++
	a, err := s.b.Store.Do(ctx, 0, s.stamp, r)
	s.b.requireNoError(err)
	return a
}

// claimIfDue claims if the sleeper was woken or nextClaimAt has passed.
func (s *sleeper) claimIfDue() {
	s.b.Helper()
	select {
	case <-s.woken:
	default:
		if s.nextClaimAt == 0 || s.b.now() < s.nextClaimAt {
			return
		}
	}
	s.claim(store.MaxClaim)
}

// waitForClaims calls claimIfDue of each sleeper until s[0] has claimed n tasks, and then a few
// more times. s[0] must not claim more than n.
func waitForClaims(what string, n int, s ...*sleeper) {
	b := s[0].b
	b.Helper()
	deadline := time.Now().Add(maxWait)
	for quietSteps := 0; quietSteps < 5; {
		b.require(time.Now().Before(deadline), "%s: the worker is not woken", what)
		for _, s := range s {
			s.claimIfDue()
		}
		if time.Sleep(500 * time.Microsecond); s[0].claimedCount >= n {
			quietSteps++
		}
	}
	equal(b, what+": claimed", s[0].claimedCount, n)
}

// testSleepers lets one worker sleep while another has too many due tasks for one claim.
// Tasks that only the sleeper can run must still be claimed in time.
func testSleepers(b *storeTest) {
	if a := b.sendRound(b.claimRound(1)); a.Next >= 0 {
		b.Skip("workers of this store also claim from time to time: a wake-up may come late")
	}
	scheduleTasks := func(handler string, from, n int, w store.When) {
		b.Helper()
		items := limitedTasks(fmt.Sprint(handler, from, "-"), handler, "", n, 0)
		for i := range items {
			items[i].When = w
		}
		b.scheduleItems(items)
	}
	s, end := b.startSleeper("sleeper", "a")
	defer end()
	other, leave := b.startSleeper("other", "b")
	defer leave()
	// otherClaimsOne lets the other worker claim one of its due tasks while s sleeps. Next
	// must then be 0.
	otherClaimsOne := func() {
		b.Helper()
		waitForClaims("nothing", s.claimedCount, s)
		n := other.claimedCount
		other.claim(1)
		equal(b, "claimed", other.claimedCount, n+1)
		b.require(other.nextClaimAt != 0 && other.nextClaimAt <= b.now(), "Next is not 0, but a due task is left")
	}
	otherClaimsRest := func(n int) {
		b.Helper()
		other.nextClaimAt = b.now()
		waitForClaims("remaining tasks", n, other)
	}

	scheduleTasks("b", 0, 5, b.after(0))
	otherClaimsOne()
	scheduleTasks("a", 0, 1, b.after(0))
	waitForClaims("at once", 1, s, other)
	otherClaimsRest(5)

	scheduleTasks("b", 10, 5, b.after(0))
	otherClaimsOne()
	scheduleTasks("a", 1, 1, b.after(10))
	otherClaimsRest(10)
	b.sleep(10)
	waitForClaims("later", 2, s, other)

	// There are more due tasks than a store may read at once, and one task for later.
	for i := range 3 {
		scheduleTasks("b", 100+100*i, 100, b.after(0))
	}
	scheduleTasks("b", 1000, 1, b.after(20))
	otherClaimsOne()
	otherClaimsRest(310)
	scheduleTasks("a", 2, 1, b.after(30))
	b.sleep(20)
	waitForClaims("after all others", 311, other, s)
	b.sleep(10)
	waitForClaims("after the last one", 3, s, other)

	// The other worker leaves while tasks are due.
	scheduleTasks("b", 2000, 5, b.after(0))
	otherClaimsOne()
	scheduleTasks("a", 3, 1, b.after(10))
	r := b.emptyRound()
	r.Leave = true
	other.sendRound(r)
	leave()
	b.sleep(10)
	waitForClaims("after the other worker has left", 4, s)
}
