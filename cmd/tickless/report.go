package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"time"
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

// interruptedNote ends what a command prints when it was cut short.
const interruptedNote = "Interrupted: this is what was done until then."

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
