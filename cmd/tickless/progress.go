package main

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A progressBar shows how much of a run is over: as a bar on a terminal,
// otherwise as a line when the run begins.
type progressBar struct {
	w   io.Writer
	bar *progressbar.ProgressBar // nil where w is no terminal
}

// newProgressBar begins a bar for a run of total steps, under a name. What the
// run consists of is said where there is no bar.
func newProgressBar(w io.Writer, name string, total int64, what string) progressBar {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		fmt.Fprintf(w, "%s: %s\n", name, what)
		return progressBar{w: w}
	}
	return progressBar{w, progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(fmt.Sprintf("%-16s", name)),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true),
	)}
}

// set shows that n steps are over.
func (p progressBar) set(n int64) {
	if p.bar != nil {
		_ = p.bar.Set64(n) // a bar that cannot be drawn must not end the run
	}
}

// finish ends the bar's line, however far it got.
func (p progressBar) finish() {
	if p.bar != nil {
		_ = p.bar.Exit()
		fmt.Fprintln(p.w)
	}
}
