package debugpage

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// sourceView shows a thing that is not a Scheduler: see WithSources.
type sourceView struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Error is the reason why reading the numbers failed.
	Error string `json:"error,omitempty"`
	// Numbers maps the names of metrics to numbers. A metric with a label maps to another
	// map, from values of the label to numbers.
	Numbers map[string]any `json:"numbers"`
	Notes   []noteView     `json:"notes,omitempty"` // the latest first

	ID         string       `json:"-"` // HTML id of the heading
	Title      string       `json:"-"`
	Figures    []figureView `json:"-"` // the metrics without a label
	Tables     []tableView  `json:"-"` // the metrics with a label, one table for each label
	NotesTitle string       `json:"-"`
}

// figureView is one number on the page.
type figureView struct{ Name, Text, Help string }

// tableView has a row for each value of a label, and a column for each metric.
type tableView struct {
	Label   string
	Columns []figureView // the heading is Name and then Text
	Rows    []tableRow
}

type tableRow struct {
	Part  string // the value of the label
	Cells []string
}

type noteView struct {
	When time.Time `json:"when"`
	What string    `json:"what"`
	Text string    `json:"text"`
}

// quantilesSuffix is appended to the name of a histogram.
const quantilesSuffix = ", p50 / p99"

// newSourceView makes the sourceView of a reading. n is its number on the page.
func newSourceView(n int, r *metric.Reading) sourceView {
	v := sourceView{
		Kind: r.Thing.Name, Name: r.Name, Numbers: r.Numbers(),
		ID: "source" + strconv.Itoa(n), Title: r.Thing.Title, NotesTitle: r.Thing.Notes,
	}
	if r.Err != nil {
		v.Error = r.Err.Error()
	}
	for i := range r.Thing.Metrics {
		v.addMetric(r, &r.Thing.Metrics[i])
	}
	for i := range v.Tables {
		v.Tables[i].fillRows()
	}
	v.Tables = slices.DeleteFunc(v.Tables, func(t tableView) bool { return len(t.Rows) == 0 })
	for _, n := range slices.Backward(r.Notes()) {
		v.Notes = append(v.Notes, noteView(n))
	}
	return v
}

// addMetric adds a metric to the figures or to a table.
func (v *sourceView) addMetric(r *metric.Reading, m *metric.Metric) {
	name := r.Thing.Short(m)
	addValue := func(part, text string) {
		if m.Label != "" {
			v.tableFor(m.Label).setCell(name, m, part, text)
			return
		}
		heading := spacedName(name)
		if m.Kind == metric.Histogram {
			heading += quantilesSuffix
		}
		v.Figures = append(v.Figures, figureView{heading, text, m.Help})
	}
	if m.Kind == metric.Histogram {
		r.Histograms(m, func(part string, h timer.Histogram) {
			if h.Count() == 0 {
				addValue(part, "\u2013")
				return
			}
			addValue(part, formatDuration(h.Quantile(0.5).Seconds())+" / "+formatDuration(h.Quantile(0.99).Seconds()))
		})
		return
	}
	r.Values(m, func(part string, value float64) {
		switch {
		case name == metric.ReadFailures && value == 0: // almost always
		case m.Seconds():
			addValue(part, formatDuration(value))
		default:
			addValue(part, formatFigure(value))
		}
	})
}

// tableFor returns the table for a label. It adds the table if there is none.
func (v *sourceView) tableFor(label string) *tableView {
	for i := range v.Tables {
		if v.Tables[i].Label == label {
			return &v.Tables[i]
		}
	}
	v.Tables = append(v.Tables, tableView{Label: label})
	return &v.Tables[len(v.Tables)-1]
}

func (t *tableView) setCell(name string, m *metric.Metric, part, text string) {
	columnIndex := 0
	for columnIndex < len(t.Columns) && t.Columns[columnIndex].Name != name {
		columnIndex++
	}
	if columnIndex == len(t.Columns) {
		c := figureView{Name: name, Help: m.Help}
		if m.Kind == metric.Histogram {
			c.Text = quantilesSuffix
		}
		t.Columns = append(t.Columns, c)
	}
	rowIndex := 0
	for rowIndex < len(t.Rows) && t.Rows[rowIndex].Part != part {
		rowIndex++
	}
	if rowIndex == len(t.Rows) {
		t.Rows = append(t.Rows, tableRow{Part: part})
	}
	for len(t.Rows[rowIndex].Cells) <= columnIndex {
		t.Rows[rowIndex].Cells = append(t.Rows[rowIndex].Cells, "\u2013")
	}
	t.Rows[rowIndex].Cells[columnIndex] = text
}

// fillRows adds missing cells to the rows, and removes rows without numbers. If the names
// of all columns begin with the same word, fillRows removes this word.
func (t *tableView) fillRows() {
	prefix, _, _ := strings.Cut(t.Columns[0].Name, ".")
	for _, c := range t.Columns {
		if !strings.HasPrefix(c.Name, prefix+".") {
			prefix = ""
		}
	}
	for i := range t.Columns {
		t.Columns[i].Name = spacedName(strings.TrimPrefix(t.Columns[i].Name, prefix+"."))
	}
	t.Rows = slices.DeleteFunc(t.Rows, func(r tableRow) bool {
		return !slices.ContainsFunc(r.Cells, func(text string) bool { return text != "0" && text != "\u2013" })
	})
	for i := range t.Rows {
		for len(t.Rows[i].Cells) < len(t.Columns) {
			t.Rows[i].Cells = append(t.Rows[i].Cells, "\u2013")
		}
		if t.Rows[i].Part == "" {
			t.Rows[i].Part = "all"
		}
	}
}

// spacedName returns a metric's name with spaces between the words.
func spacedName(name string) string { return strings.NewReplacer(".", " ", "_", " ").Replace(name) }
