package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

// A Machine describes where the figures of a report were measured.
type Machine struct {
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

// ThisMachine describes the machine that runs the program.
func ThisMachine() Machine {
	return Machine{runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0)}
}

// String formats m as the line above a table.
func (m Machine) String() string {
	return fmt.Sprintf("%s %s/%s, %d procs", m.Go, m.OS, m.Arch, m.GOMAXPROCS)
}

const interruptedNote = "Interrupted: the figures are incomplete."

// FinishReport prints the report if asJSON is true. After an interruption, it returns
// ErrInterrupted, and without asJSON it prints a note first.
func FinishReport(cmd *cobra.Command, asJSON bool, report any) error {
	interrupted := cmd.Context().Err() != nil
	if asJSON {
		if err := PrintJSON(cmd.OutOrStdout(), report); err != nil {
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

// PrintJSON writes a report to w as JSON.
func PrintJSON(w io.Writer, report any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}
