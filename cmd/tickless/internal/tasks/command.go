// Package tasks contains the commands that show and change the tasks of a store, or of a
// service over its API. Workers may use the store at the same time.
package tasks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

// sharedFlags are the flags that all these commands share.
type sharedFlags struct {
	location       stores.Location
	url, tokenFile string // of a service
	asJSON         bool
	skipConfirm    bool // do not ask for confirmation
}

// storeOnly are the commands that the API of a service does not have.
var storeOnly = []string{"sync", "verify", "repair", "backup", "restore", "copy", "migrate"}

// NewCommand returns the command tasks with its subcommands.
func NewCommand() *cobra.Command {
	var c sharedFlags
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "Shows and changes the tasks of a store or of a service",
		Long: `Shows and changes the tasks of a store, or with --url those of a service that tickless
serve runs. Workers may use it at the same time.

The ID of a task is its key. In output and arguments, \x00 means a NUL and \\ a
backslash: the dead letter of a repeating task has the ID KEY\x00. A time is written as
2026-01-02T15:04:05Z, or as a duration from now, such as 1h or -30m. A handler of a service
is one of its queues.`,
		Example: `  tickless tasks list --file tasks.db --error timeout
  tickless tasks get --file tasks.db order-17
  tickless tasks requeue --redis redis://localhost:6379 --handler mail
  tickless tasks stats --url https://tasks.example --token-file token`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			isStoreOnly := slices.Contains(storeOnly, cmd.Name())
			switch n := c.location.Count(); {
			case cmd.HasSubCommands(): // prints its help
			case !isStoreOnly && (n > 1 || (n == 1) == (c.url != "")):
				return cli.UsageError{Err: errors.New("name the tasks with one of --file, --redis, --postgres and --url")}
			case c.url == "" && c.tokenFile != "":
				return cli.UsageError{Err: errors.New("--token-file is for --url")}
			case c.url != "" && isStoreOnly:
				return cli.UsageError{Err: fmt.Errorf("a service does not have %s: give its store, with --file, --redis or --postgres", cmd.Name())}
			case c.url != "" && c.location != (stores.Location{}):
				return cli.UsageError{Err: errors.New("--cluster, --name and --shards are not for --url")}
			}
			return nil
		},
	}
	cli.Group(cmd)
	flags := cmd.PersistentFlags()
	c.location.AddFlags(flags, "")
	flags.StringVar(&c.url, "url", "", "URL of a service, such as http://127.0.0.1:7420")
	flags.StringVar(&c.tokenFile, "token-file", "", "file with the token for --url; its last word counts (default $TICKLESS_TOKEN_FILE)")
	flags.BoolVar(&c.asJSON, "json", false, "print JSON")
	cmd.AddCommand(c.newListCommand(), c.newGetCommand(), c.newExplainCommand(), c.newRunsCommand(), c.newUpcomingCommand(),
		c.newWorkersCommand(), c.newLimitsCommand(), c.newStatsCommand(),
		c.newAddCommand(), c.newChangeTaskCommand(), c.newSyncCommand(), c.newLimitCommand(),
		c.newPauseCommand("pause", "Stops tasks, a handler or the whole store from running", `Stops tasks, a handler or the whole store from running, on all workers. What is running
ends; the rest waits, with its time and its attempts, until resume.`),
		c.newPauseCommand("resume", "Ends the pause of tasks, of a handler or of the whole store",
			"Ends the pause of tasks, of a handler or of the whole store. What is past its time runs at once."),
		c.newRunCommand(),
		c.newBulkCommand("cancel", "Cancels pending tasks, and asks running tasks to stop", "tasks cancelled"),
		c.newBulkCommand("requeue", "Runs dead letters again, now", "dead letters requeued"),
		c.newBulkCommand("purge", "Deletes dead letters", "dead letters deleted"),
		c.newVerifyCommand(), c.newRepairCommand(), c.newBackupCommand(), c.newRestoreCommand(), c.newCopyCommand(), c.newMigrateCommand())
	return cmd
}

// withTasks opens the store, which must exist unless mayCreate is true, or connects to the
// service, and calls f.
func (c *sharedFlags) withTasks(cmd *cobra.Command, mayCreate bool, f func(ctx context.Context, x target) error) error {
	if c.url != "" {
		s, err := newRemote(c.url, c.tokenFile)
		if err == nil {
			err = f(cmd.Context(), s)
		}
		return usageError(err)
	}
	if mayCreate && c.location.IsNewFile() {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s is a new store\n", c.location.File)
	}
	return c.withStore(cmd, mayCreate, func(ctx context.Context, st store.Store) error { return f(ctx, local{durable.New(st)}) })
}

// usageError makes invalid input a wrong use of the command.
func usageError(err error) error {
	if errors.Is(err, durable.ErrInvalid) {
		return cli.UsageError{Err: err}
	}
	return err
}

// show opens the tasks for reading, calls read, and prints what it returns: as JSON, or with
// print.
func show[T any](c *sharedFlags, cmd *cobra.Command, read func(ctx context.Context, x target) (T, error), print func(T) error) error {
	c.location.ReadOnly = true
	return c.withTasks(cmd, false, func(ctx context.Context, x target) error {
		v, err := read(ctx, x)
		switch {
		case err != nil:
			return err
		case c.asJSON:
			return figures.PrintJSON(cmd.OutOrStdout(), v)
		}
		return print(v)
	})
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

func (c *sharedFlags) addYes(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.skipConfirm, "yes", "y", false, "do not ask")
}

func formatTaskCount(n int) string {
	if n == 1 {
		return "1 task"
	}
	return figures.GroupDigits(int64(n)) + " tasks"
}
