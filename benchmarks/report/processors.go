package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// processorsMode is not a mode that benchmarks are run in: it makes the tables of what was
// measured on another processor, and one of both.
const processorsMode = "processors"

// other is the directory, in that of the results, of those from another processor, which
// may be fewer.
const other = "other"

// processorRows are the rows of the table of two processors: the headlines and more.
var processorRows = append([]headline{
	{"rates", key{"StartStop", "n=1M/p=2", "ns/op"}, "start and stop a timer, 1M others pending, 2 procs (ns)"},
	{"rates", key{"Churn", "n=100k/p=1", "ns/op"}, "stop a random one of 100k and start another, 1 proc (ns)"},
	{"rates", key{"Churn", "n=1M/p=1", "ns/op"}, "stop a random one of 1M and start another, 1 proc (ns)"},
}, headlines...)

// processors returns a table with four columns for each processor: package time's figure,
// ours, the ratio, and that of the means. It is empty if there are no results from another
// processor.
func processors(dir string) (string, error) {
	sides := make([]map[string]*results, 2)
	for i, dir := range []string{dir, filepath.Join(dir, other)} {
		sides[i] = make(map[string]*results)
		for _, mode := range []string{"rates", "busy"} {
			r, err := readResults(filepath.Join(dir, mode+".txt"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", err
			}
			sides[i][mode] = r
		}
	}
	if len(sides[1]) == 0 {
		return "", nil
	}
	var b strings.Builder
	names := []string{"A", "B"}
	for i, side := range sides {
		fmt.Fprintf(&b, "- %s: ", names[i])
		var parts []string
		for _, mode := range []string{"rates", "busy"} {
			if r := side[mode]; r != nil {
				parts = append(parts, fmt.Sprintf("mode %s, commit %s, %s", mode, r.config["commit"], machine(r)))
			}
		}
		b.WriteString(strings.Join(parts, "; ") + ".\n")
	}
	b.WriteString("\n| lower is better |")
	for _, name := range names {
		for _, column := range append(compared[:len(compared):len(compared)], "ratio", "means") {
			fmt.Fprintf(&b, " %s, %s |", column, name)
		}
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", 4*len(names)) + "\n")
	for _, h := range processorRows {
		if sides[0][h.mode] == nil || sides[1][h.mode] == nil {
			continue
		}
		fmt.Fprintf(&b, "| %s |", h.title)
		for i, side := range sides {
			if _, ok := side[h.mode].median(h.key, "tickless"); !ok {
				return "", fmt.Errorf("%s.txt of %s has no figures for %v", h.mode, names[i], h.key)
			}
			row{key: h.key}.writeVersion(&b, side[h.mode])
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

// writeProcessors writes the table of two processors into the README, if there are two,
// and MODE.md for each mode of the other one.
func writeProcessors(dir, readme string) error {
	table, err := processors(dir)
	if err != nil || table == "" {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, other, "*.txt"))
	if err != nil {
		return err
	}
	for _, file := range files {
		r, err := readResults(file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(file, ".txt")
		text := "# Another processor's results of `make bench`, mode " + filepath.Base(name) + "\n\n" + tables(r, false)
		if err := os.WriteFile(name+".md", []byte(text), 0o644); err != nil {
			return err
		}
	}
	begin, end := markers(processorsMode)
	return rewrite(readme, begin, end, table)
}
