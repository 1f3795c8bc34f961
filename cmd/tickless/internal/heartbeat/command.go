package heartbeat

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// flags are the flags of the heartbeat server.
type flags struct {
	config config
	json   bool
	child  bool // the program was called by itself: see runChild
}

// NewCommand returns the command that runs a heartbeat server.
func NewCommand() *cobra.Command {
	f := flags{config: config{Conns: 8_000, Memory: 100_000}}
	cmd := &cobra.Command{
		Use:   "idle [flags]",
		Short: "Runs a heartbeat server and its clients, and evicts the silent ones",
		Long: `Runs a server and its clients, connected over the loopback interface. The
clients send heartbeats at random intervals. Some fall silent, and the server
has to find and close their connections. It does so with package idle, with
SetReadDeadline before each Read, and with a time.Timer that each heartbeat
resets. Then the same with more connections to an event loop in memory, which
shows the cost of the timeouts alone.

The load is drawn beforehand, and all sides get the same one. Nothing listens
or connects outside of 127.0.0.0/8.`,
		Example: `  tickless idle                                 8,000 connections, then 100,000 in memory
  tickless idle --conns 30k --processes 4 --heartbeat 2s --timeout 4s
                                                more connections than one process may have open
  tickless idle --conns 0 --memory 1M           only in memory
  tickless idle --timeout 30s --heartbeat 5s    timeouts as in servers; takes minutes
  tickless idle --json > result.json            the figures as JSON`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.child {
				return runChild(cmd)
			}
			if err := f.config.validate(); err != nil {
				return cli.UsageError{Err: err}
			}
			return runAll(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var((*cli.Count)(&f.config.Conns), "conns", "number of connections over TCP, such as 10k")
	flags.IntVar(&f.config.Processes, "processes", 1, "processes that they are spread over, each with an address of its own")
	flags.Var((*cli.Count)(&f.config.Memory), "memory", "number of connections in memory")
	flags.DurationVar(&f.config.Timeout, "timeout", 1500*time.Millisecond, "time after which a silent connection is evicted")
	flags.DurationVar(&f.config.Heartbeat, "heartbeat", 250*time.Millisecond, "average time between two heartbeats of a connection")
	flags.DurationVar(&f.config.Duration, "duration", 500*time.Millisecond, "time over which connections fall silent")
	flags.Float64Var(&f.config.Silent, "silent", 0.03, "share of the connections that fall silent, 0 to 1")
	flags.DurationVar(&f.config.Patience, "patience", 3*time.Second, "how late the last evictions may come before they count as missed")
	flags.Uint64Var(&f.config.Seed, "seed", 1, "seed of the load")
	flags.BoolVar(&f.json, "json", false, "print JSON instead of tables")
	flags.BoolVar(&f.child, "child", false, "")
	_ = flags.MarkHidden("child")
	return cmd
}
