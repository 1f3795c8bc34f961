package heartbeat

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// A config says what the load is.
type config struct {
	Conns     int           // over TCP
	Processes int           // that they are spread over
	Memory    int           // connections in memory
	Timeout   time.Duration // after which a silent connection is evicted
	Heartbeat time.Duration // between two of a connection, on average
	Duration  time.Duration // over which connections fall silent
	Silent    float64       // share of them that do
	Patience  time.Duration // how late the last evictions may come before they count as missed
	Seed      uint64        // the same seed draws the same load
}

const (
	maxConns     = 1_000_000
	maxMemory    = 10_000_000
	maxProcesses = 100
	maxSpan      = time.Hour
	maxBeats     = 30_000_000 // 16 bytes each

	// portsOfAPair is about how many ports an address has for connections to
	// one port of another.
	portsOfAPair = 28_000
	// jitter is by how much of itself an interval between two heartbeats is
	// longer or shorter than the average, at most.
	jitter = 0.5
	// grace is how long the connections that do not fall silent go on when
	// the last that does is due.
	grace = 250 * time.Millisecond
)

// validate returns what is wrong with c in one line, or nil.
func (c config) validate() error {
	for _, span := range []struct {
		name string
		d    time.Duration
	}{{"timeout", c.Timeout}, {"heartbeat", c.Heartbeat}, {"duration", c.Duration}, {"patience", c.Patience}} {
		if span.d <= 0 || span.d > maxSpan {
			return fmt.Errorf("the %s must be positive and at most %v, not %v", span.name, maxSpan, span.d)
		}
	}
	longest := time.Duration(float64(c.Heartbeat) * (1 + jitter))
	switch {
	case c.Conns < 0 || c.Conns > maxConns:
		return fmt.Errorf("the number of connections must lie between 0 and %d, not %d", maxConns, c.Conns)
	case c.Memory < 0 || c.Memory > maxMemory:
		return fmt.Errorf("the number of connections in memory must lie between 0 and %d, not %d", maxMemory, c.Memory)
	case c.Conns == 0 && c.Memory == 0:
		return errors.New("there must be connections, over TCP or in memory")
	case c.Processes < 1 || c.Processes > maxProcesses:
		return fmt.Errorf("the number of processes must lie between 1 and %d, not %d", maxProcesses, c.Processes)
	case c.Conns > 0 && c.Processes > c.Conns:
		return fmt.Errorf("there must not be more processes than connections, %d", c.Conns)
	case longest >= c.Timeout:
		return fmt.Errorf("heartbeats come up to %v apart, which must be less than the timeout of %v", longest, c.Timeout)
	case !(c.Silent >= 0 && c.Silent <= 1): // so that NaN is refused
		return fmt.Errorf("the share that falls silent must lie between 0 and 1, not %v", c.Silent)
	}
	for _, part := range []struct {
		name string
		n    int
	}{{"conns", c.Conns}, {"memory", c.Memory}} {
		if beats := float64(part.n) * float64(c.span()) / float64(c.Heartbeat); beats > maxBeats {
			return fmt.Errorf("with --%s %d there would be %.0f heartbeats over %v; at most %d can be drawn", part.name, part.n, beats, c.span(), maxBeats)
		}
	}
	each := c.of(0).Conns
	if each > portsOfAPair {
		return fmt.Errorf("one process has ports for %d connections only: use --processes", portsOfAPair)
	}
	if need, limit := filesOf(each), fileLimit(); need > limit {
		return fmt.Errorf("%d connections in one process take %d open files, of which %d are allowed: use --processes", each, need, limit)
	}
	return nil
}

// filesOf returns how many files a process with both ends of n connections needs.
func filesOf(n int) int { return 2*n + 50 }

// span is how long the heartbeats go on.
func (c config) span() time.Duration { return c.Duration + c.Timeout + grace }

// of returns the part of the load that is process i's.
func (c config) of(i int) config {
	n := (c.Conns + c.Processes - 1 - i) / c.Processes
	c.Conns, c.Processes, c.Seed = n, 1, c.Seed+uint64(i)
	return c
}

// MarshalJSON writes durations in milliseconds, as the names of the fields tell.
func (c config) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Conns       int     `json:"conns"`
		Processes   int     `json:"processes"`
		Memory      int     `json:"memory"`
		TimeoutMS   float64 `json:"timeout_ms"`
		HeartbeatMS float64 `json:"heartbeat_ms"`
		DurationMS  float64 `json:"duration_ms"`
		Silent      float64 `json:"silent"`
		PatienceMS  float64 `json:"patience_ms"`
		Seed        uint64  `json:"seed"`
	}{c.Conns, c.Processes, c.Memory, cli.InMillis(c.Timeout), cli.InMillis(c.Heartbeat), cli.InMillis(c.Duration), c.Silent, cli.InMillis(c.Patience), c.Seed})
}

// beat is a heartbeat of a plan.
type beat struct {
	at   time.Duration
	conn int32
}

// plan is the load, drawn beforehand.
type plan struct {
	config config
	conns  int
	beats  []beat // by moment
	silent []bool // of each connection: it falls silent
}

// newPlan draws the load for a number of connections. Each has its first
// heartbeat within an interval, and the others at random intervals; those that
// fall silent do so at a random moment.
func newPlan(c config, conns int) *plan {
	rng := rand.New(rand.NewPCG(c.Seed, uint64(conns)))
	p := &plan{config: c, conns: conns, silent: make([]bool, conns)}
	p.beats = make([]beat, 0, int(float64(conns)*float64(c.span())/float64(c.Heartbeat)*1.05))
	for i := range conns {
		end := c.span()
		if p.silent[i] = rng.Float64() < c.Silent; p.silent[i] {
			end = time.Duration(rng.Int64N(int64(c.Duration)))
		}
		at := time.Duration(rng.Int64N(int64(c.Heartbeat)))
		for at < end {
			p.beats = append(p.beats, beat{at, int32(i)})
			at += time.Duration(math.Ceil(float64(c.Heartbeat) * (1 + jitter*(2*rng.Float64()-1))))
		}
	}
	slices.SortFunc(p.beats, func(a, b beat) int { return int(a.at - b.at) })
	return p
}

// silentOnes returns how many connections fall silent.
func (p *plan) silentOnes() int {
	n := 0
	for _, s := range p.silent {
		if s {
			n++
		}
	}
	return n
}
