// Package tasks is the commands that show and change the tasks of a store, also while
// workers use it.
package tasks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
)

// A call is the flags that all these commands share.
type call struct {
	place stores.Place
	json  bool
	yes   bool
}

// NewCommand returns the parent command.
func NewCommand() *cobra.Command {
	var c call
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "Shows and changes the tasks of a store",
		Long: `Shows and changes the tasks of a store, also while workers use it.

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
	c.place.AddFlags(flags)
	flags.BoolVar(&c.json, "json", false, "print JSON")
	cmd.AddCommand(c.newList(), c.newGet(), c.newStats(),
		c.newChange("run", "Has pending tasks run now", "", durable.Pending, again((*durable.Client).RescheduleBatch)),
		c.newChange("cancel", "Takes pending tasks out, and asks running ones to stop", "cancel", 0, (*durable.Client).CancelBatch),
		c.newChange("requeue", "Has dead letters run again, now", "", durable.Dead, again((*durable.Client).RequeueBatch)),
		c.newChange("purge", "Deletes dead letters", "purge", durable.Dead, (*durable.Client).PurgeBatch),
		c.newSwitch("pause", "Keeps workers from taking tasks", (*durable.Client).Pause),
		c.newSwitch("resume", "Ends a pause", (*durable.Client).Resume))
	return cmd
}

// with opens the store and calls f with a client.
func (c *call) with(cmd *cobra.Command, f func(ctx context.Context, client *durable.Client) error) error {
	st, closeStore, err := c.place.Use(cmd.Context(), cmd.ErrOrStderr(), true)
	if err != nil {
		return err
	}
	return errors.Join(f(cmd.Context(), durable.New(st)), closeStore())
}

// confirm asks whether to continue, unless --yes is set.
func (c *call) confirm(cmd *cobra.Command, what string, n int) error {
	if c.yes || what == "" || n == 0 {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Really %s %s? [y/N] ", what, tasks(n))
	line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing changed: answer y, or give --yes")
	}
	return nil
}

func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return cli.Thousands(int64(n)) + " tasks"
}

// newSwitch returns the command pause or resume.
func (c *call) newSwitch(name, short string, do func(*durable.Client, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(ctx context.Context, client *durable.Client) error { return do(client, ctx) })
		},
	}
}
