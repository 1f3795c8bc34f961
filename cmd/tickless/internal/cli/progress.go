package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A Bar shows how much of a run is over: as a progress bar on a terminal,
// otherwise as a line when the run begins.
type Bar struct {
	w   io.Writer
	bar *progressbar.ProgressBar // nil where w is no terminal
}

// NewBar begins a bar for a run of total steps, under a name. What the
// run consists of is said where there is no bar.
func NewBar(w io.Writer, name string, total int64, what string) Bar {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		fmt.Fprintf(w, "%s: %s\n", name, what)
		return Bar{w: w}
	}
	return Bar{w, progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(fmt.Sprintf("%-16s", name)),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true),
	)}
}

// Set shows that n steps are over.
func (p Bar) Set(n int64) {
	if p.bar != nil {
		_ = p.bar.Set64(n) // a bar that cannot be drawn must not end the run
	}
}

// Finish ends the bar's line, however far it got.
func (p Bar) Finish() {
	if p.bar != nil {
		_ = p.bar.Exit()
		fmt.Fprintln(p.w)
	}
}
