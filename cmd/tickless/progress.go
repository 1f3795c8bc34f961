package main

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tickless/tickless/cmd/tickless/internal/load"
)

// A progressBar shows how many requests of a run are over: as a bar on a
// terminal, otherwise as a line when the run begins.
type progressBar struct {
	w   io.Writer
	bar *progressbar.ProgressBar // nil where w is no terminal
}

func newProgressBar(w io.Writer, name string, c load.Config) progressBar {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		fmt.Fprintf(w, "%s: %s requests over %v\n", name, thousands(int64(c.Count)), c.Duration)
		return progressBar{w: w}
	}
	return progressBar{w, progressbar.NewOptions64(int64(c.Count),
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(fmt.Sprintf("%-14s", name)),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true),
	)}
}

// set shows that n requests are over.
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
