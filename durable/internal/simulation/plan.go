package simulation

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Plan says what a simulation plays. All else follows from its Seed.
type Plan struct {
	Seed uint64
	// Without has the names of the actors and faults that are left out. The others do what
	// they do in the full plan, as far as they do not depend on what is left out.
	Without []string
	// Storm is how long the storm lasts; zero: as long as the seed says.
	Storm time.Duration
}

const (
	maxWorkers = 4
	maxClients = 3
)

// The faults of the bus and of the actors.
const (
	slow      = "slow"      // a message takes up to 12 s
	loss      = "loss"      // a request or an answer is lost; the call may fail while its message is under way
	duplicate = "duplicate" // a message arrives twice
	refuse    = "refuse"    // the store is busy or full
	gather    = "gather"    // a round is delayed and gets more reports
	partition = "partition" // an actor cannot reach the store for a while
	hold      = "hold"      // an actor stands still for up to three leases
	crash     = "crash"     // a worker's process dies
	stop      = "stop"      // a Worker is stopped and runs again
	reopen    = "reopen"    // the store is closed and opened again
	step      = "step"      // the store's clock is set
)

var faults = []string{slow, loss, duplicate, refuse, gather, partition, hold, crash, stop, reopen, step}

// names returns everything that the plan can leave out.
func names() (all []string) {
	for i := range maxWorkers {
		all = append(all, fmt.Sprint("worker", i))
	}
	for i := range maxClients {
		all = append(all, fmt.Sprint("client", i))
	}
	return append(append(all, "copy0"), faults...)
}

func (p *Plan) has(name string) bool { return !slices.Contains(p.Without, name) }

// Command returns the command that plays the plan.
func (p *Plan) Command() string {
	s := fmt.Sprint("make simulation SEED=", p.Seed)
	if len(p.Without) > 0 {
		s += " WITHOUT=" + strings.Join(p.Without, ",")
	}
	if p.Storm > 0 {
		s += " STORM=" + p.Storm.String()
	}
	return s
}

// random returns the generator of what the name stands for.
func (p *Plan) random(name ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, name...)
	return rand.New(rand.NewPCG(p.Seed, h.Sum64()))
}

// chance returns true with the probability of p percent.
func chance(r *rand.Rand, p float64) bool { return r.Float64()*100 < p }

// upTo returns a random duration below d, with a part that makes moments distinct.
func upTo(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(max(d, 1)))) + time.Duration(r.Int64N(999)) + 1
}

// randomOf returns one of the values.
func randomOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }
