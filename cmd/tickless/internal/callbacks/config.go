package callbacks

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/stores"
)

// A config says what is run, and on what.
type config struct {
	Dir         string        `json:"dir,omitempty"` // empty: a temporary one
	Redis       string        `json:"-"`             // a URL, startServer or inProcess; empty: a directory
	Cluster     bool          `json:"cluster"`
	Tasks       int           `json:"tasks"`
	Duration    time.Duration `json:"-"` // over which they fall due
	Workers     int           `json:"workers"`
	Concurrency int           `json:"concurrency"` // of each worker
	Lease       time.Duration `json:"-"`
	Handling    time.Duration `json:"-"` // how long the receiver takes
	Kills       int           `json:"kills"`
	Patience    time.Duration `json:"-"` // how long after the last is due or acknowledged, or the last kill, until what is missing is lost
}

// What --redis can be besides a URL.
const (
	startServer = "start"
	inProcess   = "in-process"
)

const (
	maxTasks   = 10_000_000
	maxWorkers = 64
	maxKills   = 100
	maxSpan    = time.Hour
)

// complete fills in what depends on other flags.
func (c *config) complete() {
	if c.Workers == 0 {
		if c.Workers = 1; c.Redis != "" {
			c.Workers = 3
		}
	}
	if c.Redis != "" && c.Redis != startServer && c.Redis != inProcess && !strings.Contains(c.Redis, "://") {
		c.Redis = "redis://" + c.Redis
	}
}

// end returns when what is missing is lost, if the first was due at base, and if tasks
// were held up until certain moments.
func (c config) end(base time.Time, heldUp ...time.Time) time.Time {
	from := base.Add(c.Duration)
	for _, t := range heldUp {
		if t.After(from) {
			from = t
		}
	}
	return from.Add(c.Patience)
}

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
	case c.Kills < 0 || c.Kills > maxKills:
		return fmt.Errorf("the number of kills must lie between 0 and %d, not %d", maxKills, c.Kills)
	case c.Patience <= 0 || c.Patience > maxSpan:
		return fmt.Errorf("the patience must be positive and at most %v, not %v", maxSpan, c.Patience)
	case c.Redis == "" && c.Cluster:
		return errors.New("a cluster needs --redis with the URL of one of its servers")
	case c.Cluster && (c.Redis == startServer || c.Redis == inProcess):
		return fmt.Errorf("a cluster needs --redis with the URL of one of its servers, not %q", c.Redis)
	case c.Redis != "" && c.Dir != "":
		return errors.New("the tasks are kept on Redis or in a directory: use --redis or --dir, not both")
	case c.Redis == "" && c.Workers > 1:
		return errors.New("one process at a time has a directory: --workers is for --redis")
	case c.Redis == "" || c.Redis == startServer || c.Redis == inProcess:
		return nil
	}
	if _, err := (stores.Place{URL: c.Redis, Cluster: c.Cluster}).Client(); err != nil {
		return fmt.Errorf("--redis must be a URL such as redis://localhost:6379, or %q, or %q: %w", startServer, inProcess, err)
	}
	return nil
}
