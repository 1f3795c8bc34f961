package callbacks

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/redistimer"
)

// A config says what is run, and on what.
type config struct {
	Addr        string        `json:"addr"` // empty: a server in this process
	Cluster     bool          `json:"cluster"`
	Tasks       int           `json:"tasks"`
	Duration    time.Duration `json:"-"` // over which they fall due
	Workers     int           `json:"workers"`
	Concurrency int           `json:"concurrency"` // of each worker
	Lease       time.Duration `json:"-"`
	Handling    time.Duration `json:"-"` // how long the receiver takes
	Kill        bool          `json:"kill"`
	Patience    time.Duration `json:"-"` // how long after the last is due until what is missing is lost
}

const (
	maxTasks   = 10_000_000
	maxWorkers = 64
	maxSpan    = time.Hour
)

// validate returns what is wrong with c in one line, or nil.
func (c config) validate() error {
	switch {
	case c.Tasks < 1 || c.Tasks > maxTasks:
		return fmt.Errorf("the number of tasks must lie between 1 and %d, not %d", maxTasks, c.Tasks)
	case c.Duration <= 0 || c.Duration > maxSpan:
		return fmt.Errorf("the duration must be positive and at most %v, not %v", maxSpan, c.Duration)
	case c.Workers < 1 || c.Workers > maxWorkers:
		return fmt.Errorf("the number of workers must lie between 1 and %d, not %d", maxWorkers, c.Workers)
	case c.Concurrency < 1 || c.Concurrency > 10_000:
		return fmt.Errorf("the concurrency must lie between 1 and 10000, not %d", c.Concurrency)
	case c.Lease < 100*time.Millisecond || c.Lease > maxSpan:
		return fmt.Errorf("the lease must lie between 100ms and %v, not %v", maxSpan, c.Lease)
	case c.Handling < 0 || c.Handling > 10*time.Second:
		return fmt.Errorf("the handling must lie between 0 and 10s, not %v", c.Handling)
	case c.Patience <= 0 || c.Patience > maxSpan:
		return fmt.Errorf("the patience must be positive and at most %v, not %v", maxSpan, c.Patience)
	case c.Cluster && c.Addr == "":
		return errors.New("a cluster needs --addr with one of its servers: the server in this process is none")
	}
	for addr := range strings.SplitSeq(c.Addr, ",") {
		if _, _, err := net.SplitHostPort(addr); c.Addr != "" && err != nil {
			return fmt.Errorf("the address must be HOST:PORT, not %q", addr)
		}
	}
	if !c.Cluster && strings.Contains(c.Addr, ",") {
		return errors.New("several addresses are for --cluster alone")
	}
	return nil
}

// client returns a client for the server, and its only errors are of commands.
func (c config) client() redis.UniversalClient {
	if c.Cluster {
		return redis.NewClusterClient(redistimer.TuneCluster(&redis.ClusterOptions{Addrs: strings.Split(c.Addr, ",")}))
	}
	return redis.NewClient(&redis.Options{Addr: c.Addr})
}
