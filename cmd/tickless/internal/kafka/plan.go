package kafka

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// A config says what the load is.
type config struct {
	Rate     int           // requests a second, on average
	Duration time.Duration // over which they arrive
	Timeout  time.Duration
	P50, P75 time.Duration // of the time until a request is answered
	Keys     int           // keys that a request waits for
	KeySpace int           // keys there are
	Complete string        // one of completions
	Seed     uint64        // the same seed draws the same load
}

// completions are the ways in which a request is answered, the default
// first: Kafka's test forces the request itself; its brokers check all requests
// that wait for the key that something has happened to.
var completions = []string{"force", "check"}

const (
	maxRequests = 100_000_000 // more than most machines have room for
	maxRate     = 10_000_000
	maxKeys     = 100
	maxKeySpace = 1_000_000
	maxSpan     = 24 * time.Hour // so that sums of spans cannot overflow
)

// count returns the number of requests.
func (c config) count() int {
	return max(1, int(float64(c.Rate)*c.Duration.Seconds()))
}

// validate returns what is wrong with c in one line, or nil.
func (c config) validate() error {
	for _, span := range []struct {
		name string
		d    time.Duration
	}{{"duration", c.Duration}, {"timeout", c.Timeout}, {"p50", c.P50}, {"p75", c.P75}} {
		if span.d <= 0 || span.d > maxSpan {
			return fmt.Errorf("the %s must be positive and at most %v, not %v", span.name, maxSpan, span.d)
		}
	}
	switch {
	case c.Rate < 1 || c.Rate > maxRate:
		return fmt.Errorf("the rate must lie between 1 and %d a second, not %d", maxRate, c.Rate)
	case float64(c.Rate)*c.Duration.Seconds() > maxRequests:
		return fmt.Errorf("the rate times the duration must not exceed %d requests", maxRequests)
	case c.P75 < c.P50:
		return fmt.Errorf("the p75 (%v) must not be below the p50 (%v)", c.P75, c.P50)
	case c.KeySpace < 1 || c.KeySpace > maxKeySpace:
		return fmt.Errorf("the key space must lie between 1 and %d keys, not %d", maxKeySpace, c.KeySpace)
	case c.Keys < 1 || c.Keys > maxKeys:
		return fmt.Errorf("the keys of a request must lie between 1 and %d, not %d", maxKeys, c.Keys)
	case c.Keys > c.KeySpace:
		return fmt.Errorf("the keys of a request (%d) must not exceed the key space (%d)", c.Keys, c.KeySpace)
	case !slices.Contains(completions, c.Complete):
		return fmt.Errorf("requests can be completed by %s, not by %q", strings.Join(completions, " or "), c.Complete)
	}
	return nil
}

// MarshalJSON writes durations in milliseconds.
func (c config) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Rate       int     `json:"rate"`
		DurationMS float64 `json:"duration_ms"`
		TimeoutMS  float64 `json:"timeout_ms"`
		P50MS      float64 `json:"p50_ms"`
		P75MS      float64 `json:"p75_ms"`
		Keys       int     `json:"keys"`
		KeySpace   int     `json:"key_space"`
		Complete   string  `json:"complete"`
		Seed       uint64  `json:"seed"`
	}{c.Rate, cli.InMillis(c.Duration), cli.InMillis(c.Timeout), cli.InMillis(c.P50), cli.InMillis(c.P75), c.Keys, c.KeySpace, c.Complete, c.Seed})
}

// The states of a request. It goes from arrived to completed once, and on to
// expired if its timeout was the reason. Any other step is counted as wrong.
const (
	notArrived uint32 = iota
	arrived
	completed
	expired
)

// A plan is a load drawn in advance, and the records of its run. The
// slices are indexed by request, and separate so that the generator and the
// callbacks write to different cache lines.
type plan struct {
	config config
	// arrival counts from the run's begin, latency from the request's arrival.
	arrival, latency []time.Duration
	keys             []int32 // of all requests, one after another

	at    []time.Duration // when it did arrive, written just before
	late  []time.Duration // written by the callbacks
	state []atomic.Uint32
}

// z75 is the 75th percentile of the normal distribution.
const z75 = 0.674490

// newPlan draws the load that c describes, as Kafka's test does. It
// needs about 52 bytes a request with 3 keys.
func newPlan(c config) *plan {
	n := c.count()
	p := &plan{
		config:  c,
		arrival: make([]time.Duration, n),
		latency: make([]time.Duration, n),
		keys:    make([]int32, 0, n*c.Keys),
		at:      make([]time.Duration, n),
		late:    make([]time.Duration, n),
		state:   make([]atomic.Uint32, n),
	}
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	space := make([]int32, c.KeySpace)
	for i := range space {
		space[i] = int32(i)
	}
	mean := math.Log(float64(c.P50))
	deviation := (math.Log(float64(c.P75)) - mean) / z75
	between := float64(time.Second) / float64(c.Rate)
	clock := 0.0
	for i := range n {
		clock += rng.ExpFloat64() * between
		p.arrival[i] = time.Duration(clock)
		p.latency[i] = time.Duration(min(math.Exp(rng.NormFloat64()*deviation+mean), float64(maxSpan)))
		for k := range c.Keys { // different ones
			j := k + rng.IntN(c.KeySpace-k)
			space[k], space[j] = space[j], space[k]
			p.keys = append(p.keys, space[k])
		}
	}
	return p
}

func (p *plan) keysOf(i int) []int32 {
	return p.keys[i*p.config.Keys : (i+1)*p.config.Keys]
}

// answered tells whether a request is answered before its timeout.
func (p *plan) answered(i int) bool { return p.latency[i] < p.config.Timeout }

// reset makes the records ready for another run.
func (p *plan) reset() {
	clear(p.at)
	clear(p.late)
	for i := range p.state {
		p.state[i].Store(notArrived)
	}
}
