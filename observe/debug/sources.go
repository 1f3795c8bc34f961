package debug

import (
	"strings"
	"time"
	"weak"

	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// sourceView is what is shown of a thing that is not a Scheduler: see WithSources.
type sourceView struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Error is why the numbers could not be read.
	Error string `json:"error,omitempty"`
	// Numbers are by the names of the metrics, those with a label by its values.
	Numbers map[string]any `json:"numbers"`
	Notes   []noteView     `json:"notes,omitempty"` // the latest first

	ID         string       `json:"-"` // of its heading
	Title      string       `json:"-"`
	Figures    []figureView `json:"-"` // the numbers without a label
	Tables     []tableView  `json:"-"` // those with one, a table for each label
	NotesTitle string       `json:"-"`
}

// figureView is a number as it is shown.
type figureView struct{ Name, Text, Help string }

// tableView has a row for each value of a label, and a column for each metric.
type tableView struct {
	Label   string
	Columns []figureView // their texts follow the names
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

// quantilesView is what is shown of a histogram here, in seconds.
type quantilesView struct {
	Count uint64  `json:"count"`
	Sum   float64 `json:"sum"`
	Max   float64 `json:"max"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
}

func quantiles(h timer.Histogram) quantilesView {
	return quantilesView{h.Count(), h.Sum(), h.Max().Seconds(), h.Quantile(0.5).Seconds(), h.Quantile(0.99).Seconds()}
}

// bothQuantiles follows the name of a histogram.
const bothQuantiles = ", p50 / p99"

func (q quantilesView) text() string {
	if q.Count == 0 {
		return "\u2013"
	}
	return duration(q.P50) + " / " + duration(q.P99)
}

// sources reads what WithSources has named, but for the Schedulers that the page shows
// already.
func (h *handler) sources(schedulers []*timer.Scheduler) []sourceView {
	var views []sourceView
	if h.set == nil {
		return views
	}
	shown := make(map[any]bool, len(schedulers))
	for _, s := range schedulers {
		shown[weak.Make(s)] = true
	}
	for i, r := range h.set.Read() {
		if shown[r.ID] {
			continue
		}
		v := sourceView{
			Kind: r.Thing.Name, Name: r.Name, Numbers: make(map[string]any),
			ID: "source" + number(i), Title: r.Thing.Title, NotesTitle: r.Thing.Notes,
		}
		for m := range r.Thing.Metrics {
			v.add(&r, &r.Thing.Metrics[m])
		}
		for t := range v.Tables {
			v.Tables[t].fill()
		}
		if r.Err != nil {
			v.Error = r.Err.Error()
		}
		for _, n := range r.Notes() {
			v.Notes = append([]noteView{noteView(n)}, v.Notes...)
		}
		views = append(views, v)
	}
	return views
}

// add adds a metric.
func (v *sourceView) add(r *metric.Reading, m *metric.Metric) {
	name := r.Thing.Short(m)
	put := func(part string, value any, text string) {
		if m.Label == "" {
			v.Numbers[name] = value
			shown := words(name)
			if m.Kind == metric.Histogram {
				shown += bothQuantiles
			}
			v.Figures = append(v.Figures, figureView{shown, text, m.Help})
			return
		}
		parts, _ := v.Numbers[name].(map[string]any)
		if parts == nil {
			parts = make(map[string]any)
			v.Numbers[name] = parts
		}
		parts[part] = value
		v.table(m.Label).put(name, m, part, text)
	}
	if m.Kind == metric.Histogram {
		r.Histograms(m, func(part string, h timer.Histogram) {
			q := quantiles(h)
			put(part, q, q.text())
		})
		return
	}
	r.Values(m, func(part string, value float64) {
		if name == metric.ReadFailures && value == 0 {
			return // as nearly always
		}
		if m.Seconds() {
			put(part, value, duration(value))
		} else {
			put(part, value, number(int64(value)))
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

// fill makes all rows as long as the longest, and leaves out of the columns' names the
// word with which all of them begin.
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
