package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"
)

// A machine is what the figures of a report were measured on.
type machine struct {
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

func thisMachine() machine {
	return machine{runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0)}
}

// String returns the line above a table.
func (m machine) String() string {
	return fmt.Sprintf("%s %s/%s, %d procs", m.Go, m.OS, m.Arch, m.GOMAXPROCS)
}

const interruptedNote = "Interrupted: this is what was done until then."

// conclude ends a command that has printed its tables: if JSON was asked for it
// prints the report instead, and it tells of an interruption.
func conclude(cmd *cobra.Command, json bool, report any) error {
	interrupted := cmd.Context().Err() != nil
	if json {
		if err := printJSON(cmd.OutOrStdout(), report); err != nil {
			return err
		}
	} else if interrupted {
		fmt.Fprintln(cmd.OutOrStdout(), interruptedNote)
	}
	if interrupted {
		return errInterrupted
	}
	return nil
}

func printJSON(w io.Writer, report any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}

func inMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// optionalMillis is inMillis for what the system may not tell: nil is null.
func optionalMillis(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	ms := inMillis(*d)
	return &ms
}
