// Report makes of the raw output of the benchmarks what is read: tables, of
// which the README has the main ones, and plots.
//
// Usage:
//
//	report -mode quick -results results -readme ../README.md
//
// It reads MODE.txt and MODE-lateness.csv in the directory of results, and
// writes MODE.md and plots/ there, and the part of the README between its
// markers. `make bench` runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var (
		mode    = flag.String("mode", "quick", "the mode that the benchmarks were run in")
		results = flag.String("results", "results", "directory of the raw output")
		readme  = flag.String("readme", "", "file to write the main tables to, between its markers")
		format  = flag.String("format", "svg", "of the plots: svg or png")
	)
	flag.Parse()
	if err := report(*mode, *results, *readme, *format); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// What the README shows of the plots, and where it finds them.
const plotsFromReadme = "benchmarks/results/plots"

var (
	shownInReadme = []string{"growth-startstop-p1", "lateness-idle", "expiry-late"}
	shownOfBusy   = []string{"busy-burst"}
)

// busyMode has tables of its own, between markers of its own in the README.
const busyMode = "busy"

func report(mode, dir, readme, format string) error {
	r, err := readResults(filepath.Join(dir, mode+".txt"))
	if err != nil {
		return err
	}
	curves, err := readCurves(filepath.Join(dir, mode+"-lateness.csv"))
	if err != nil && !(mode == busyMode && errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	plots := filepath.Join(dir, "plots")
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	all := charts(r, curves)
	if mode == busyMode {
		all = slices.DeleteFunc(all, func(c chart) bool { return !strings.HasPrefix(c.name, "busy-") })
	}
	for _, c := range all {
		if err := save(c, filepath.Join(plots, c.name+"."+format), format); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	text := "# Results of `make bench`, mode " + mode + "\n\n" + tables(r, false) + gallery(all, "plots", nil)
	if err := os.WriteFile(filepath.Join(dir, mode+".md"), []byte(text), 0o644); err != nil {
		return err
	}
	if readme == "" {
		return nil
	}
	before, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	shown := shownInReadme
	if mode == busyMode {
		shown = shownOfBusy
	}
	replaced, err := replaceBetweenMarkers(string(before), mode, tables(r, true)+gallery(all, plotsFromReadme, shown))
	if err != nil {
		return fmt.Errorf("%s: %w", readme, err)
	}
	return os.WriteFile(readme, []byte(replaced), 0o644)
}
