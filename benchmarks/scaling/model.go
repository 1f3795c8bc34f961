package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A load is what a program does with timers.
type load struct {
	procs int
	// pollers are the one poller and its helpers, which take from one queue.
	pollers int
	// fired is how many timers fall due in a second, of all procs; moves how many
	// levels each has come down.
	fired float64
	moves float64
	// stops is how many are started and stopped in a second beside them.
	stops float64
	// shards that starts use, 0 for the default: as many as they may.
	shards int
}

// An outcome is what a simulated second of a load came to.
type outcome struct {
	busy      float64 // share of the time for which the busiest poller works
	late      float64 // ns, at p99: how long after its tick a timer's turn comes
	queueBusy float64 // share of the time for which the queue's lock is held
	shardBusy float64 // the same of the busiest shard's lock
	stopWaits float64 // ns, what a stop waits for its shard's lock on average
}

func (l load) homes() int {
	if l.shards > 0 {
		return l.shards
	}
	return max(homesPerProc*l.procs, min(shardsPerProc*l.procs, manyHomes))
}

// simulate goes through the ticks of a quarter of a second.
func (l load) simulate() outcome {
	const ticks = 2500
	rng := rand.New(rand.NewPCG(1, 2))
	homes := l.homes()
	each := l.fired * tick / 1e9 / float64(homes) // timers of a shard in a tick
	cost := bucket(homes)
	free := make([]float64, l.pollers)   // when the poller has nothing to do
	worked := make([]float64, l.pollers) // for how long it has worked
	held := make([]float64, homes)       // for how long the poller has held the lock
	square := make([]float64, homes)     // the squares of these holds
	buckets := 0
	var late []float64
	for now := 0.0; now < ticks*tick; now += tick {
		for h := range homes {
			n := poisson(rng, each)
			if n == 0 {
				continue
			}
			p := slices.Index(free, slices.Min(free))
			begin := max(free[p], now)
			work := cost + float64(n)*(fire+l.moves*move)
			free[p] = begin + work
			worked[p] += work
			late = append(late, begin+work/2-now)
			buckets++
			for left := n; left > 0; left -= batch {
				hold := float64(min(left, batch)) * (fire + l.moves*move)
				held[h] += hold
				square[h] += hold * hold
			}
		}
	}
	const span = ticks * tick
	slices.Sort(late)
	var o outcome
	for _, w := range worked {
		o.busy = max(o.busy, w/span)
	}
	if len(late) > 0 {
		o.late = late[len(late)*99/100]
	}
	o.queueBusy = float64(buckets) * queued / span
	own := (l.fired*start + l.stops*(start+stop+transfer)) / 1e9 / float64(homes)
	for h := range homes {
		o.shardBusy = max(o.shardBusy, own+held[h]/span)
		// Who comes while it is held waits for half of that hold, on average; of starts
		// and stops in a row as in a queue with one server.
		wait := square[h]/2/span + own*stop/2
		o.stopWaits = max(o.stopWaits, wait/max(0.01, 1-own))
	}
	return o
}

// limit returns how many timers a second may fall due before those that fire them, the
// queue's lock, or the workers that take their callbacks, have no time left.
func (l load) limit() float64 {
	low, high := 1e3, 1e9
	for high/low > 1.01 {
		l.fired = math.Sqrt(low * high)
		// What n timers in a bucket cost is known: no ticks have to be gone through.
		each := l.fired * tick / 1e9 / float64(l.homes())
		buckets := (1 - math.Exp(-each)) * 1e9 / tick * float64(l.homes()) // a second
		work := buckets*bucket(l.homes()) + l.fired*(fire+l.moves*move)
		if work/float64(l.pollers) > 1e9 || buckets*queued > 1e9 || l.fired*callback > 1e9 {
			high = l.fired
		} else {
			low = l.fired
		}
	}
	return low
}

// poisson draws how many come when mean do on average.
func poisson(rng *rand.Rand, mean float64) int {
	if mean > 50 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*rng.NormFloat64())))
	}
	n, p := 0, rng.Float64()
	for limit := math.Exp(-mean); p > limit; n++ {
		p *= rng.Float64()
	}
	return n
}
