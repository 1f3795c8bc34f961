package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/internal/figures"
)

const interruptedNote = "Interrupted: the figures are incomplete."

// FinishReport prints the report if asJSON is true. After an interruption, it returns
// ErrInterrupted, and without asJSON it prints a note first.
func FinishReport(cmd *cobra.Command, asJSON bool, report any) error {
	interrupted := cmd.Context().Err() != nil
	if asJSON {
		if err := figures.PrintJSON(cmd.OutOrStdout(), report); err != nil {
			return err
		}
	} else if interrupted {
		fmt.Fprintln(cmd.OutOrStdout(), interruptedNote)
	}
	if interrupted {
		return ErrInterrupted
	}
	return nil
}
