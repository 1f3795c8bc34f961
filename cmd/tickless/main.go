// Tickless is the command of the timer library of the same name.
//
// Usage:
//
//	tickless serve [flags]      calls URLs at a time or by cron: an API, a page, a worker
//	tickless scale [flags]      up to 100 million pending timers, compared with time.AfterFunc
//	tickless migrate [flags]    moves a module's timers from package time to this library
//	tickless tasks COMMAND      shows the tasks of a store, and changes them
//	tickless export FILE        writes the tasks of a store to a file
//	tickless import FILE        puts a file's tasks into a store
//	tickless completion SHELL   makes a shell complete commands and flags
//
// Each command lists its flags and examples under --help.
//
// The exit codes are:
//
//	0    success
//	1    an error; of tasks also: a task does not exist, or nothing was changed
//	2    wrong arguments
//	3    migrate found calls to rewrite
//	130  interrupted; the command has printed what it has measured
package main

import (
	"os"
	_ "time/tzdata" // for images without zone files

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/rewrite"
	"github.com/tickless/tickless/cmd/tickless/internal/scale"
	"github.com/tickless/tickless/cmd/tickless/internal/serve"
	"github.com/tickless/tickless/cmd/tickless/internal/tasks"
	"github.com/tickless/tickless/cmd/tickless/internal/transfer"
)

func main() {
	os.Exit(cli.Run(newCommand(), os.Args[1:], os.Stdout, os.Stderr))
}

// newCommand returns the root command. Without a subcommand, it prints its help.
func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tickless",
		Short: "Durable tasks, and timers for programs that keep very many of them",
		Example: `  tickless tasks list --file tasks.db     the tasks of a store
  tickless migrate ./...                  which timers of a module are worth replacing
  tickless scale                          up to 100 million pending timers`,
	}
	root.AddCommand(serve.NewCommand(), scale.NewCommand(), rewrite.NewCommand(), tasks.NewCommand(), transfer.NewExport(), transfer.NewImport())
	root.InitDefaultCompletionCmd()
	cli.Group(root)
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		cli.Group(completion)
	}
	return root
}
