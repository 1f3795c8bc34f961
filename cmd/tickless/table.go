package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// absent stands for a figure that one side can tell and another cannot.
const absent = "-"

// A figure is one row of a table: the same of every result.
type figure[R any] struct {
	name string
	// value returns the figure; ok is false where it cannot be told.
	value func(R) (v float64, ok bool)
	// format writes it with its unit.
	format func(float64) string
	// compare says whether a ratio of two such figures means anything.
	compare bool
}

// A tally is a figure that can always be told, a whole number.
func tally[R any](name string, get func(R) int64) figure[R] {
	return figure[R]{name: name, format: whole, value: func(r R) (float64, bool) { return float64(get(r)), true }}
}

// optional returns the value of a figure that the system may not tell.
func optional[N ~int64 | ~uint64](n *N) (v float64, ok bool) {
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

// renderTable draws results side by side under their names, a group of figures
// after the other, and leaves out what no result can tell. With ratios there is
// a column for that of the first to the second, if these are all.
func renderTable[R any](names []string, results []R, groups [][]figure[R], ratios bool) string {
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
			if slices.ContainsFunc(results, func(r R) bool { _, ok := f.value(r); return ok }) {
				t.AppendRow(f.cells(results, ratios))
			}
		}
	}
	return t.Render() + "\n"
}

func (f figure[R]) cells(results []R, ratios bool) table.Row {
	cells := table.Row{f.name}
	var values []float64
	for _, r := range results {
		v, ok := f.value(r)
		if !ok {
			cells = append(cells, absent)
			continue
		}
		values = append(values, v)
		cells = append(cells, f.format(v))
	}
	if ratios {
		ratio := ""
		if f.compare && len(values) == 2 && values[1] > 0 {
			ratio = fmt.Sprintf("%.2f", values[0]/values[1])
		}
		cells = append(cells, ratio)
	}
	return cells
}

func whole(v float64) string   { return thousands(int64(v)) }
func millis(v float64) string  { return fmt.Sprintf("%.2f ms", v/float64(time.Millisecond)) }
func seconds(v float64) string { return fmt.Sprintf("%.2f s", v/float64(time.Second)) }
func nanos(v float64) string   { return fmt.Sprintf("%.0f ns", v) }
func inBytes(v float64) string { return thousands(int64(math.Round(v))) + " B" }

func percent(v float64) string { return strconv.FormatFloat(v*100, 'f', -1, 64) + "%" }

// thousands writes n in groups of three digits.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}
