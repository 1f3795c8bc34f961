package figures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"unicode/utf8"
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
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(report); err != nil {
		return err
	}
	// A terminal obeys DEL, the characters of C1, and those that change the direction of
	// text. The encoder has escaped the control characters below U+0020.
	text := invisible.ReplaceAllStringFunc(b.String(), func(s string) string {
		r, _ := utf8.DecodeRuneInString(s)
		return fmt.Sprintf(`\u%04x`, r)
	})
	_, err := io.WriteString(w, text)
	return err
}

var invisible = regexp.MustCompile("[\x7f\u0080-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
