package debug

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
	// Error says why the numbers could not be read.
	Error string `json:"error,omitempty"`
	// Numbers maps the names of metrics to numbers. A metric with a label maps to an
	// object with a number for each value of the label.
	Numbers map[string]any `json:"numbers"`
	Notes   []noteView     `json:"notes,omitempty"` // the latest first

	ID         string       `json:"-"` // of the heading
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
	Columns []figureView // Text is appended to the name
	Rows    []tableRow
}

type tableRow struct {
	Part  string
	Cells []string
}

type noteView struct {
	When time.Time `json:"when"`
	What string    `json:"what"`
	Text string    `json:"text"`
}

// bothQuantiles is appended to the name of a histogram.
const bothQuantiles = ", p50 / p99"

// newSourceView makes the sourceView of the nth thing.
func newSourceView(n int, r *metric.Reading) sourceView {
	v := sourceView{
		Kind: r.Thing.Name, Name: r.Name, Numbers: r.Numbers(),
		ID: "source" + strconv.Itoa(n), Title: r.Thing.Title, NotesTitle: r.Thing.Notes,
	}
	if r.Err != nil {
		v.Error = r.Err.Error()
	}
	for i := range r.Thing.Metrics {
		v.add(r, &r.Thing.Metrics[i])
	}
	for i := range v.Tables {
		v.Tables[i].fill()
	}
	for _, n := range slices.Backward(r.Notes()) {
		v.Notes = append(v.Notes, noteView(n))
	}
	return v
}

// add adds a metric to the figures or to a table.
func (v *sourceView) add(r *metric.Reading, m *metric.Metric) {
	name := r.Thing.Short(m)
	put := func(part, text string) {
		if m.Label != "" {
			v.table(m.Label).put(name, m, part, text)
			return
		}
		shown := words(name)
		if m.Kind == metric.Histogram {
			shown += bothQuantiles
		}
		v.Figures = append(v.Figures, figureView{shown, text, m.Help})
	}
	if m.Kind == metric.Histogram {
		r.Histograms(m, func(part string, h timer.Histogram) {
			if h.Count() == 0 {
				put(part, "\u2013")
				return
			}
			put(part, duration(h.Quantile(0.5).Seconds())+" / "+duration(h.Quantile(0.99).Seconds()))
		})
		return
	}
	r.Values(m, func(part string, value float64) {
		switch {
		case name == metric.ReadFailures && value == 0: // almost always
		case m.Seconds():
			put(part, duration(value))
		default:
			put(part, figure(value))
		}
	})
}

// table returns the table of a label.
func (v *sourceView) table(label string) *tableView {
	for i := range v.Tables {
		if v.Tables[i].Label == label {
			return &v.Tables[i]
		}
	}
	v.Tables = append(v.Tables, tableView{Label: label})
	return &v.Tables[len(v.Tables)-1]
}

func (t *tableView) put(name string, m *metric.Metric, part, text string) {
	column := 0
	for column < len(t.Columns) && t.Columns[column].Name != name {
		column++
	}
	if column == len(t.Columns) {
		c := figureView{Name: name, Help: m.Help}
		if m.Kind == metric.Histogram {
			c.Text = bothQuantiles
		}
		t.Columns = append(t.Columns, c)
	}
	row := 0
	for row < len(t.Rows) && t.Rows[row].Part != part {
		row++
	}
	if row == len(t.Rows) {
		t.Rows = append(t.Rows, tableRow{Part: part})
	}
	for len(t.Rows[row].Cells) <= column {
		t.Rows[row].Cells = append(t.Rows[row].Cells, "\u2013")
	}
	t.Rows[row].Cells[column] = text
}

// fill makes all rows equally long. If all columns' names begin with the same word, it
// removes that word.
func (t *tableView) fill() {
	first, _, _ := strings.Cut(t.Columns[0].Name, ".")
	for _, c := range t.Columns {
		if !strings.HasPrefix(c.Name, first+".") {
			first = ""
		}
	}
	for i := range t.Columns {
		t.Columns[i].Name = words(strings.TrimPrefix(t.Columns[i].Name, first+"."))
	}
	for i := range t.Rows {
		for len(t.Rows[i].Cells) < len(t.Columns) {
			t.Rows[i].Cells = append(t.Rows[i].Cells, "\u2013")
		}
		if t.Rows[i].Part == "" {
			t.Rows[i].Part = "all"
		}
	}
}

// words makes a metric's name readable.
func words(name string) string { return strings.NewReplacer(".", " ", "_", " ").Replace(name) }
