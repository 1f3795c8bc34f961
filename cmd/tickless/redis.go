package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tickless/tickless/redistimer"
)

// A redisConfig says what is run, and on what.
type redisConfig struct {
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
	maxRedisTasks   = 10_000_000
	maxRedisWorkers = 64
	maxRedisSpan    = time.Hour
)

// validate returns what is wrong with c in one line, or nil.
func (c redisConfig) validate() error {
	switch {
	case c.Tasks < 1 || c.Tasks > maxRedisTasks:
		return fmt.Errorf("the number of tasks must lie between 1 and %d, not %d", maxRedisTasks, c.Tasks)
	case c.Duration <= 0 || c.Duration > maxRedisSpan:
		return fmt.Errorf("the duration must be positive and at most %v, not %v", maxRedisSpan, c.Duration)
	case c.Workers < 1 || c.Workers > maxRedisWorkers:
		return fmt.Errorf("the number of workers must lie between 1 and %d, not %d", maxRedisWorkers, c.Workers)
	case c.Concurrency < 1 || c.Concurrency > 10_000:
		return fmt.Errorf("the concurrency must lie between 1 and 10000, not %d", c.Concurrency)
	case c.Lease < 100*time.Millisecond || c.Lease > maxRedisSpan:
		return fmt.Errorf("the lease must lie between 100ms and %v, not %v", maxRedisSpan, c.Lease)
	case c.Handling < 0 || c.Handling > 10*time.Second:
		return fmt.Errorf("the handling must lie between 0 and 10s, not %v", c.Handling)
	case c.Patience <= 0 || c.Patience > maxRedisSpan:
		return fmt.Errorf("the patience must be positive and at most %v, not %v", maxRedisSpan, c.Patience)
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
func (c redisConfig) client() redis.UniversalClient {
	if c.Cluster {
		return redis.NewClusterClient(redistimer.TuneCluster(&redis.ClusterOptions{Addrs: strings.Split(c.Addr, ",")}))
	}
	return redis.NewClient(&redis.Options{Addr: c.Addr})
}

// quiet keeps go-redis from writing what comes back as an error as well.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

type redisFlags struct {
	config redisConfig
	json   bool
	child  bool // the program was called by itself: see runRedisChild
}

// newRedisCommand returns the command that runs timers on Redis.
func newRedisCommand() *cobra.Command {
	f := redisFlags{config: redisConfig{Tasks: 5_000}}
	cmd := &cobra.Command{
		Use:   "redis [flags]",
		Short: "Runs timers on Redis: HTTP callbacks by worker processes, one of which is killed",
		Long: `Schedules tasks on Redis that call an HTTP server of this program, has worker
processes deliver them, and kills one of these on the way with what it has in
hand, and starts it again. Then tells how many tasks were delivered, how often,
and how late.

By default the server is miniredis, in this process: nothing needs to be
installed, and it is slower than a real one. With --addr it is a real one. The
tasks are in a queue of their own there, which is removed at the end.`,
		Example: `  tickless redis                                       in this process
  tickless redis --addr localhost:6379 --tasks 100k    a real server
  tickless redis --addr localhost:7000 --cluster       a cluster, by one of its servers
  tickless redis --kill=false --workers 1              nobody dies
  tickless redis --json > result.json                  the figures for a program to read`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			redis.SetLogger(quiet{})
			if f.child {
				return runRedisChild(cmd)
			}
			if err := f.config.validate(); err != nil {
				return usageError{err}
			}
			return runRedis(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.config.Addr, "addr", "", "HOST:PORT of a Redis server; several of a cluster with commas between (default: one in this process)")
	flags.BoolVar(&f.config.Cluster, "cluster", false, "the address is of a Redis Cluster")
	flags.Var((*count)(&f.config.Tasks), "tasks", "to schedule; 10k is understood")
	flags.DurationVar(&f.config.Duration, "duration", 5*time.Second, "over which they fall due, at random")
	flags.IntVar(&f.config.Workers, "workers", 3, "worker processes")
	flags.IntVar(&f.config.Concurrency, "concurrency", 64, "calls that each has under way at most")
	flags.DurationVar(&f.config.Lease, "lease", time.Second, "after which a dead worker's tasks go to the others")
	flags.DurationVar(&f.config.Handling, "handling", 2*time.Millisecond, "how long the HTTP server takes for a call")
	flags.BoolVar(&f.config.Kill, "kill", true, "kill a worker half way, and start it again")
	flags.DurationVar(&f.config.Patience, "patience", 20*time.Second, "how late the last may come before they count as lost")
	flags.BoolVar(&f.json, "json", false, "print JSON instead of a table")
	flags.BoolVar(&f.child, "child", false, "")
	_ = flags.MarkHidden("child")
	return cmd
}

// runRedis runs it on the server that the flags say.
func runRedis(cmd *cobra.Command, f redisFlags) error {
	c, where := f.config, f.config.Addr
	if c.Addr == "" {
		m := miniredis.NewMiniRedis()
		if err := m.StartAddr("127.0.0.1:0"); err != nil {
			return fmt.Errorf("the server in this process: %w", err)
		}
		defer m.Close()
		c.Addr, where = m.Addr(), "miniredis, in this process"
	}
	client := c.client()
	defer client.Close()
	if err := reachRedis(cmd.Context(), client, c); err != nil {
		if cmd.Context().Err() != nil {
			return errInterrupted
		}
		return err
	}
	run := &redisRun{config: c, client: client, stderr: cmd.ErrOrStderr()}
	r, err := run.all(cmd.Context())
	if err != nil {
		return err
	}
	r.Server = where
	if !f.json {
		if err := printRedisTable(cmd.OutOrStdout(), c, r); err != nil {
			return err
		}
	}
	return conclude(cmd, f.json, redisReport{thisMachine(), c, c.Duration.Milliseconds(), c.Lease.Milliseconds(), r})
}

// reachRedis returns an error that says what to do if the server is not there, or
// not of the kind that it is said to be.
func reachRedis(ctx context.Context, client redis.UniversalClient, c redisConfig) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	info, err := client.Info(ctx).Result()
	if err != nil {
		if c.Cluster {
			if one := redis.NewClient(&redis.Options{Addr: strings.Split(c.Addr, ",")[0]}); one.Ping(ctx).Err() == nil {
				one.Close()
				return fmt.Errorf("the server at %s is not part of a cluster that works; without --cluster it may be used alone: %w", c.Addr, err)
			}
		}
		return fmt.Errorf("no Redis server can be reached at %s: %w", c.Addr, err)
	}
	if !c.Cluster && strings.Contains(info, "cluster_enabled:1") {
		return fmt.Errorf("the server at %s is part of a cluster: use --cluster", c.Addr)
	}
	return nil
}
