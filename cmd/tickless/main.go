// Tickless shows what the timer library of that name does on this machine.
//
// Usage:
//
//	tickless [flags]            a load of request timeouts, beside time.AfterFunc
//	tickless scale [flags]      up to 100 million pending timers, beside time.AfterFunc
//	tickless migrate [flags]    moves a module's timers from package time to this library
//	tickless tasks COMMAND      shows the tasks of a store, and changes them
//	tickless export FILE        writes the tasks of a store to a file
//	tickless import FILE        puts a file's tasks into a store
//
// Each has its flags and examples under --help.
//
// It exits with 0 when everything went well, 1 when something failed or a timer of
// Tickless was lost, early or fired twice, 2 when it was called wrongly, 3 when migrate
// has found what it could rewrite, and 130 when it was interrupted; what was measured
// until then is printed all the same.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/requests"
	"github.com/tickless/tickless/cmd/tickless/internal/rewrite"
	"github.com/tickless/tickless/cmd/tickless/internal/scale"
	"github.com/tickless/tickless/cmd/tickless/internal/tasks"
	"github.com/tickless/tickless/cmd/tickless/internal/transfer"
)

func main() {
	os.Exit(cli.Run(newCommand(), os.Args[1:], os.Stdout, os.Stderr))
}

// newCommand returns the program's command, which is also what runs when no
// subcommand is named.
func newCommand() *cobra.Command {
	root := requests.NewCommand()
	root.AddCommand(scale.NewCommand(), rewrite.NewCommand(), tasks.NewCommand(), transfer.NewExport(), transfer.NewImport())
	return root
}
