package cli

import (
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// absent stands for a figure that one side can tell and another cannot.
const absent = "-"

// A Figure is one row of a table: the same of every result.
type Figure[R any] struct {
	Name string
	// Value returns the figure; ok is false where it cannot be told.
	Value func(R) (v float64, ok bool)
	// Format writes it with its unit.
	Format func(float64) string
	// Compare says whether a ratio of two such figures means anything.
	Compare bool
}

// Tally returns a figure that can always be told, a whole number.
func Tally[R any](name string, get func(R) int64) Figure[R] {
	return Figure[R]{Name: name, Format: Whole, Value: func(r R) (float64, bool) { return float64(get(r)), true }}
}

// Optional returns the value of a figure that the system may not tell.
func Optional[N ~int64 | ~uint64](n *N) (v float64, ok bool) {
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

// RenderTable draws results side by side under their names, a group of figures
// after the other, and leaves out what no result can tell. With ratios there is
// a column for that of the first to the second, if these are all.
func RenderTable[R any](names []string, results []R, groups [][]Figure[R], ratios bool) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatDefault
	ratios = ratios && len(results) == 2

	header := table.Row{""}
	for _, name := range names {
		header = append(header, name)
	}
	if ratios {
		header = append(header, "ratio")
	}
	columns := []table.ColumnConfig{{Number: 1}}
	for i := range header[1:] {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(columns)

	for i, group := range groups {
		if i > 0 {
			t.AppendSeparator()
		}
		for _, f := range group {
			if slices.ContainsFunc(results, func(r R) bool { _, ok := f.Value(r); return ok }) {
				t.AppendRow(f.cells(results, ratios))
			}
		}
	}
	return t.Render() + "\n"
}

func (f Figure[R]) cells(results []R, ratios bool) table.Row {
	cells := table.Row{f.Name}
	var values []float64
	for _, r := range results {
		v, ok := f.Value(r)
		if !ok {
			cells = append(cells, absent)
			continue
		}
		values = append(values, v)
		cells = append(cells, f.Format(v))
	}
	if ratios {
		ratio := ""
		if f.Compare && len(values) == 2 && values[1] > 0 {
			ratio = fmt.Sprintf("%.2f", values[0]/values[1])
		}
		cells = append(cells, ratio)
	}
	return cells
}
