// Package tasks is the commands that look at the tasks of a store, and change them, beside
// the program that works on it.
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

// A call is what the flags of all these commands say.
type call struct {
	place stores.Place
	json  bool
	yes   bool
}

// NewCommand returns the command that the others are under.
func NewCommand() *cobra.Command {
	var c call
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "Shows the tasks of a store, and changes them",
		Long: `Shows the tasks of a store, and changes them, beside the program that works on it.

IDs are keys. In what is printed, and in arguments, \x00 stands for a NUL and \\ for a
backslash: the dead letter of a repeating task has its key and \x00 as its ID. Times are
given as 2026-01-02T15:04:05Z, or as a duration from now, such as 1h or -30m.`,
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

// with opens the store for f.
func (c *call) with(cmd *cobra.Command, f func(ctx context.Context, client *durable.Client) error) error {
	st, closeStore, err := c.place.Use(cmd.Context(), cmd.ErrOrStderr(), true)
	if err != nil {
		return err
	}
	return errors.Join(f(cmd.Context(), durable.New(st)), closeStore())
}

// confirm asks whether to go on, unless the flags have said so.
func (c *call) confirm(cmd *cobra.Command, what string, n int) error {
	if c.yes || what == "" || n == 0 {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Really %s %s? [y/N] ", what, tasks(n))
	line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing was done: answer y, or give --yes")
	}
	return nil
}

func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return cli.Thousands(int64(n)) + " tasks"
}

// newSwitch returns pause or resume.
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
