package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

// A Machine is what the figures of a report were measured on.
type Machine struct {
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

// ThisMachine returns the machine that the program runs on.
func ThisMachine() Machine {
	return Machine{runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0)}
}

// String returns the line above a table.
func (m Machine) String() string {
	return fmt.Sprintf("%s %s/%s, %d procs", m.Go, m.OS, m.Arch, m.GOMAXPROCS)
}

const interruptedNote = "Interrupted: this is what was done until then."

// Conclude ends a command that has printed its tables: if JSON was asked for it
// prints the report instead, and it tells of an interruption.
func Conclude(cmd *cobra.Command, json bool, report any) error {
	interrupted := cmd.Context().Err() != nil
	if json {
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

// PrintJSON writes a report.
func PrintJSON(w io.Writer, report any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}
