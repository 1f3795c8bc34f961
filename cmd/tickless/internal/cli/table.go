package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// unknownText is the text of a figure that has no value.
const unknownText = "-"

// A Figure is one row of a table.
type Figure[R any] struct {
	Name string
	// Value returns the figure of a result. ok is false if it is unknown.
	Value func(R) (v float64, ok bool)
	// Format formats the figure with its unit.
	Format func(float64) string
	// HasRatio is true if the ratio of two such figures is meaningful.
	HasRatio bool
}

// CountFigure returns a Figure for a whole number that is always known.
func CountFigure[R any](name string, get func(R) int64) Figure[R] {
	return Figure[R]{Name: name, Format: Whole, Value: func(r R) (float64, bool) { return float64(get(r)), true }}
}

// RenderTable formats a table with a row for each figure and a column for each result. It
// omits figures that no result has. If ratios is true and there are two results, a third
// column shows their ratio.
func RenderTable[R any](names []string, results []R, groups [][]Figure[R], ratios bool) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', tabwriter.AlignRight)
	writeLine := func(cells []string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }
	nameWidth := 0
	for _, group := range groups {
		for _, f := range group {
			nameWidth = max(nameWidth, len(f.Name))
		}
	}
	ratios = ratios && len(results) == 2
	header := append([]string{strings.Repeat(" ", nameWidth)}, names...)
	if ratios {
		header = append(header, "ratio")
	}
	writeLine(header)
	for i, group := range groups {
		if i > 0 {
			writeLine(make([]string, len(header)))
		}
		for _, f := range group {
			if slices.ContainsFunc(results, func(r R) bool { _, ok := f.Value(r); return ok }) {
				writeLine(append([]string{fmt.Sprintf("%-*s", nameWidth, f.Name)}, f.cells(results, ratios)...))
			}
		}
	}
	_ = t.Flush() // writing to a Builder cannot fail
	return b.String()
}

func (f Figure[R]) cells(results []R, ratios bool) (cells []string) {
	var values []float64
	for _, r := range results {
		v, ok := f.Value(r)
		if !ok {
			cells = append(cells, unknownText)
			continue
		}
		values = append(values, v)
		cells = append(cells, f.Format(v))
	}
	if !ratios {
		return cells
	}
	ratio := ""
	if f.HasRatio && len(values) == 2 && values[1] > 0 {
		ratio = fmt.Sprintf("%.2f", values[0]/values[1])
	}
	return append(cells, ratio)
}
