// Report turns the raw output of the benchmarks into tables and plots.
//
// Usage:
//
//	report -mode full -results results -readme README.md -front ../README.md
//
// It reads MODE.txt and MODE-lateness.csv in the directory of results. It writes
// MODE.md and plots/ there, the main tables into the README, and the few figures
// that decide into the front page, each between its markers. Those few come from
// rates.txt and busy.txt, whatever the mode. Beside those of another processor, which are
// in the directory other below the results, they are in the README as well: mode processors
// makes that table alone. Of mode quick, whose figures nobody
// quotes, it writes quick.md alone. `make bench` runs it.
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
		mode    = flag.String("mode", quick, "the mode that the benchmarks were run in")
		results = flag.String("results", "results", "directory of the raw output")
		readme  = flag.String("readme", "", "file to write the main tables to, between its markers")
		page    = flag.String("front", "", "file to write the headlines to, between its markers")
		format  = flag.String("format", "svg", "of the plots: svg or png")
	)
	flag.Parse()
	if err := report(*mode, *results, *readme, *page, *format); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// What the README shows of the plots, and where it finds them.
const plotsFromReadme = "results/plots"

var (
	shownInReadme = []string{"growth-startstop-p1", "lateness-idle", "expiry-late"}
	shownOfBusy   = []string{"busy-burst"}
)

// quick is the mode that shows roughly what a change does.
const quick = "quick"

// aside are the modes that have tables of their own, between markers of their own in
// the README, and only the plots that are named after them.
var aside = []string{"busy", "contexts", "rates", "limits", "versions", redis}

func report(mode, dir, readme, page, format string) error {
	if mode == processorsMode {
		return writeProcessors(dir, readme)
	}
	r, err := readResults(filepath.Join(dir, mode+".txt"))
	if err != nil {
		return err
	}
	curves, err := readCurves(filepath.Join(dir, mode+"-lateness.csv"))
	if err != nil && !(slices.Contains(aside, mode) && errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	var all []chart
	if mode == quick {
		readme, page = "", ""
	} else {
		all = charts(r, curves)
	}
	if slices.Contains(aside, mode) {
		all = slices.DeleteFunc(all, func(c chart) bool { return !strings.HasPrefix(c.name, mode+"-") })
	}
	plots := filepath.Join(dir, "plots")
	if len(all) > 0 {
		if err := os.MkdirAll(plots, 0o755); err != nil {
			return err
		}
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
	shown := shownInReadme
	if slices.Contains(aside, mode) {
		shown = shownOfBusy
	}
	if readme != "" {
		begin, end := markers(mode)
		if err := rewrite(readme, begin, end, tables(r, true)+gallery(all, plotsFromReadme, shown)); err != nil {
			return err
		}
	}
	if page == "" {
		return nil
	}
	figures, err := front(dir)
	if err != nil {
		return err
	}
	if err := rewrite(page, frontBegin, frontEnd, figures); err != nil || readme == "" {
		return err
	}
	return writeProcessors(dir, readme)
}
