// Package tasks contains the commands that show and change the tasks of a store. Workers may
// use the store at the same time.
package tasks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
)

// sharedFlags are the flags that all these commands share.
type sharedFlags struct {
	location    stores.Location
	asJSON      bool
	skipConfirm bool // do not ask for confirmation
}

// NewCommand returns the command tasks with its subcommands.
func NewCommand() *cobra.Command {
	var c sharedFlags
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "Shows and changes the tasks of a store",
		Long: `Shows and changes the tasks of a store. Workers may use it at the same time.

The ID of a task is its key. In output and arguments, \x00 means a NUL and \\ a
backslash: the dead letter of a repeating task has the ID KEY\x00. A time is written as
2026-01-02T15:04:05Z, or as a duration from now, such as 1h or -30m.`,
		Example: `  tickless tasks list --file tasks.db --error timeout
  tickless tasks get --file tasks.db order-17
  tickless tasks requeue --redis redis://localhost:6379 --handler mail
  tickless tasks stats --redis redis://localhost:6379 --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return cli.UsageError{Err: fmt.Errorf("unknown command %q of tasks", args[0])}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := cmd.PersistentFlags()
	c.location.AddFlags(flags)
	flags.BoolVar(&c.asJSON, "json", false, "print JSON")
	cmd.AddCommand(c.newListCommand(), c.newGetCommand(), c.newExplainCommand(), c.newRunsCommand(), c.newUpcomingCommand(),
		c.newWorkersCommand(), c.newLimitsCommand(), c.newStatsCommand(),
		c.newAddCommand(), c.newChangeTaskCommand(), c.newSyncCommand(), c.newLimitCommand(), c.newPauseCommand(), c.newResumeCommand(),
		c.newRunCommand(),
		c.newBulkCommand("cancel", "Cancels pending tasks, and asks running tasks to stop", "cancel", "tasks cancelled", (*durable.Client).CancelBatch, (*durable.Client).CancelAll),
		c.newBulkCommand("requeue", "Runs dead letters again, now", "", "dead letters requeued", makeDueNow((*durable.Client).RequeueBatch),
			func(c *durable.Client, ctx context.Context, f durable.Filter, opts ...durable.BulkOption) (int, error) {
				return c.RequeueAll(ctx, f, durable.After(0), opts...)
			}),
		c.newBulkCommand("purge", "Deletes dead letters", "purge", "dead letters deleted", (*durable.Client).PurgeBatch, (*durable.Client).PurgeAll),
		c.newVerifyCommand(), c.newRepairCommand(), c.newBackupCommand(), c.newRestoreCommand(), c.newCopyCommand(), c.newMigrateCommand())
	return cmd
}

// withClient opens the store and calls f with a client.
func (c *sharedFlags) withClient(cmd *cobra.Command, f func(ctx context.Context, client *durable.Client) error) error {
	st, closeStore, err := c.location.CheckAndOpen(cmd.Context(), cmd.ErrOrStderr(), true)
	if err != nil {
		return err
	}
	return errors.Join(f(cmd.Context(), durable.New(st)), closeStore())
}

// confirm asks whether to continue, unless --yes is set. It returns an error if the answer
// is not yes.
func (c *sharedFlags) confirm(cmd *cobra.Command, what string) error {
	if c.skipConfirm {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Really %s? [y/N] ", what)
	line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing changed: answer y, or give --yes")
	}
	return nil
}

func formatTaskCount(n int) string {
	if n == 1 {
		return "1 task"
	}
	return figures.GroupDigits(int64(n)) + " tasks"
}
