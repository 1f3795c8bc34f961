package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
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

// PrintJSON writes a report to w as JSON.
func PrintJSON(w io.Writer, report any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

// A Fault counts how often tickless violated one guarantee.
type Fault struct {
	Name  string
	Count int64
}

// FaultsError returns an error that lists the faults with a nonzero Count. It returns nil
// if there are none.
func FaultsError(faults ...Fault) error {
	var broken []string
	for _, f := range faults {
		if f.Count != 0 {
			broken = append(broken, fmt.Sprintf("%s: %s", f.Name, GroupDigits(f.Count)))
		}
	}
	if broken == nil {
		return nil
	}
	return errors.New("FAILED: faults of tickless: " + strings.Join(broken, "; "))
}
