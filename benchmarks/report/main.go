// Report turns the output of the benchmarks into tables.
//
//	report -mode rates -results results
//
// This command reads results/rates.txt and writes results/rates.md. The mode busy also
// writes the plot burst.svg.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	mode := flag.String("mode", "quick", "the MODE of make bench that made the output")
	dir := flag.String("results", "results", "directory of the benchmarks' output")
	flag.Parse()
	if err := report(*mode, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func report(mode, dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, mode+".txt"))
	if err != nil {
		return err
	}
	r, err := parseResults(string(text))
	if err != nil {
		return fmt.Errorf("%s.txt: %w", mode, err)
	}
	if err := os.WriteFile(filepath.Join(dir, mode+".md"), []byte(r.markdown()), 0o644); err != nil {
		return err
	}
	if mode != "busy" {
		return nil
	}
	const n, procs = "100k", 2
	bars := r.medianBars(rowKey{"BusyBurst", fmt.Sprintf("n=%s/busy=4/p=%d", n, procs), "last-ms"}, []string{"tickless", "heap", "time"})
	if len(bars) == 0 {
		return nil
	}
	svg := plotSVG(fmt.Sprintf("%s timers due at once beside 4 computing goroutines, %d procs: the last is late by (ms)", n, procs), bars)
	return os.WriteFile(filepath.Join(dir, "burst.svg"), []byte(svg), 0o644)
}
