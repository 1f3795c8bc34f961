package figures

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// unknownText is the text of a figure that has no value.
const unknownText = "-"

// A Row is one row of a table: a figure of each result.
type Row[R any] struct {
	Name string
	// Value returns the figure of a result. ok is false if it is unknown.
	Value func(R) (v float64, ok bool)
	// Format formats the figure with its unit.
	Format func(float64) string
	// HasRatio is true if the ratio of two such figures is meaningful.
	HasRatio bool
}

// CountRow returns a Row for a whole number that is always known.
func CountRow[R any](name string, get func(R) int64) Row[R] {
	return Row[R]{Name: name, Format: FormatWhole, Value: func(r R) (float64, bool) { return float64(get(r)), true }}
}

// RenderTable formats a table with a column for each result. It omits rows without any
// known value. If withRatio is true and there are two results, a third column shows their
// ratio.
func RenderTable[R any](names []string, results []R, groups [][]Row[R], withRatio bool) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', tabwriter.AlignRight)
	writeLine := func(cells []string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }
	nameWidth := 0
	for _, group := range groups {
		for _, f := range group {
			nameWidth = max(nameWidth, len(f.Name))
		}
	}
	withRatio = withRatio && len(results) == 2
	header := append([]string{strings.Repeat(" ", nameWidth)}, names...)
	if withRatio {
		header = append(header, "ratio")
	}
	writeLine(header)
	for i, group := range groups {
		if i > 0 {
			writeLine(make([]string, len(header)))
		}
		for _, f := range group {
			if slices.ContainsFunc(results, func(r R) bool { _, ok := f.Value(r); return ok }) {
				writeLine(append([]string{fmt.Sprintf("%-*s", nameWidth, f.Name)}, f.cells(results, withRatio)...))
			}
		}
	}
	_ = t.Flush() // writing to a Builder cannot fail
	return b.String()
}

func (f Row[R]) cells(results []R, withRatio bool) (cells []string) {
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
	if !withRatio {
		return cells
	}
	ratio := ""
	if f.HasRatio && len(values) == 2 && values[1] > 0 {
		ratio = fmt.Sprintf("%.2f", values[0]/values[1])
	}
	return append(cells, ratio)
}
