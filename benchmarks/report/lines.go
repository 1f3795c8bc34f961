package main

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	linesHeight = vg.Length(330)
	legendWidth = vg.Length(156)
	linesWidth  = pageWidth + 80
)

// growthChart draws what an operation costs against the number of timers
// pending.
func growthChart(r *results, name, title, workload, procs string) (chart, bool) {
	var keys []key
	for _, p := range r.params(workload, "ns/op") {
		if param(p, "p") == procs {
			keys = append(keys, key{workload, p, "ns/op"})
		}
	}
	if len(keys) < 2 {
		return chart{}, false
	}
	n := func(k key) float64 { return size(param(k.params, "n")) }
	slices.SortFunc(keys, func(a, b key) int { return cmp.Compare(n(a), n(b)) })

	p := newLines(title, "timers pending, logarithmic scale", "ns, logarithmic scale")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	// None at all has its place one step before the first.
	zero := n(keys[slices.IndexFunc(keys, func(k key) bool { return n(k) > 0 })]) / 10
	x := func(k key) float64 { return max(n(k), zero) }
	var ticks []plot.Tick
	for _, k := range keys {
		label := param(k.params, "n")
		if label == "0" {
			label = "none"
		}
		ticks = append(ticks, plot.Tick{Value: x(k), Label: label})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Min, p.X.Max = x(keys[0])/1.4, x(keys[len(keys)-1])*1.4
	least, most := math.Inf(1), 0.0
	var lines []namedLine
	for _, impl := range r.impls {
		var pts plotter.XYs
		for _, k := range keys {
			if v, ok := r.median(k, impl); ok && v > 0 {
				pts = append(pts, plotter.XY{X: x(k), Y: v})
				least, most = min(least, v), max(most, v)
			}
		}
		if len(pts) > 0 {
			lines = append(lines, newNamedLine(impl, pts, 1))
		}
	}
	p.Y.Min, p.Y.Max = least/1.3, most*1.3
	p.Y.Tick.Marker = thousandTicks{halfDecades{}}
	slices.SortStableFunc(lines, func(a, b namedLine) int { return cmp.Compare(b.end().Y, a.end().Y) })
	for _, l := range lines {
		p.Add(l.line, l.marks)
	}
	return chart{name, title, linesWidth, linesHeight, func(c draw.Canvas) {
		left := draw.Crop(c, 4, -legendWidth, 4, -4)
		p.Draw(left)
		nameEnds(c, p.DataCanvas(left), p, lines)
	}}, true
}

// leastLate is where the axis of lateness begins, in milliseconds.
const leastLate = 0.01

// curveChart draws the share of timers that were late by a time at most.
func curveChart(curves []curve, name, title, load string) (chart, bool) {
	p := newLines(title, "late by at most, ms, logarithmic scale", "share of timers, %")
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = thousandTicks{plot.LogTicks{Prec: -1}}
	p.Y.Min, p.Y.Max = 0, 102
	most := 1.0
	var lines []namedLine
	for _, c := range curves {
		if c.load != load {
			continue
		}
		var pts plotter.XYs
		for i := range c.share {
			v := max(c.ms[i], leastLate)
			pts = append(pts, plotter.XY{X: v, Y: 100 * c.share[i]})
			most = max(most, v)
		}
		lines = append(lines, newNamedLine(c.impl, pts, len(pts)/8))
	}
	if len(lines) == 0 {
		return chart{}, false
	}
	p.X.Min, p.X.Max = leastLate, most*1.2
	// The legend has the order of the lines' middles, from left to right.
	middle := func(l namedLine) float64 { return l.line.XYs[len(l.line.XYs)/2].X }
	slices.SortStableFunc(lines, func(a, b namedLine) int { return cmp.Compare(middle(a), middle(b)) })
	return linesChart(name, p, lines), true
}

func newLines(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size = 13
	p.Title.Padding = 6
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Size = 11
		a.Tick.Label.Font.Size = 10
	}
	p.Add(gridX{}, gridY{})
	return p
}

// A namedLine is the line of one implementation, with a mark every so many
// points.
type namedLine struct {
	impl  string
	line  *plotter.Line
	marks *plotter.Scatter
}

func newNamedLine(impl string, pts plotter.XYs, every int) namedLine {
	l := lookOf(impl)
	line := &plotter.Line{XYs: pts, LineStyle: draw.LineStyle{Color: l.color, Width: 1.5, Dashes: l.dashes}}
	var marked plotter.XYs
	for i := 0; i < len(pts); i += max(every, 1) {
		marked = append(marked, pts[i])
	}
	marks := &plotter.Scatter{XYs: marked, GlyphStyle: draw.GlyphStyle{Color: l.color, Radius: 3.5, Shape: l.glyph}}
	return namedLine{impl, line, marks}
}

// end returns the line's last point.
func (l namedLine) end() plotter.XY { return l.line.XYs[len(l.line.XYs)-1] }

// nameEnds writes the names of the lines to the right of the data, each as high as
// its line ends or, where names would overlap, a little higher or lower. The lines
// are in the order of their ends, from the top.
func nameEnds(c, data draw.Canvas, p *plot.Plot, lines []namedLine) {
	const apart = vg.Length(15)
	toX, toY := p.Transforms(&data)
	at := make([]vg.Length, len(lines))
	for i, l := range lines {
		at[i] = toY(l.end().Y)
		if i > 0 {
			at[i] = min(at[i], at[i-1]-apart)
		}
	}
	// What was pushed out at the bottom pushes the others up again.
	lowest := data.Min.Y + 4
	for i := len(lines) - 1; i >= 0 && at[i] < lowest; i-- {
		at[i] = lowest
		lowest += apart
	}
	style := textStyle(11)
	style.YAlign = draw.YCenter
	for i, l := range lines {
		end := l.end()
		from := vg.Point{X: toX(end.X), Y: toY(end.Y)}
		name := vg.Point{X: data.Max.X + 14, Y: at[i]}
		c.StrokeLine2(draw.LineStyle{Color: leader, Width: 0.6}, from.X+5, from.Y, name.X-3, name.Y)
		c.DrawGlyph(l.marks.GlyphStyle, vg.Point{X: name.X + 4, Y: name.Y})
		c.FillText(style, vg.Point{X: name.X + 14, Y: name.Y}, l.impl)
	}
}

// linesChart draws p with the lines, and the legend to its right.
func linesChart(name string, p *plot.Plot, lines []namedLine) chart {
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	legend.TextStyle.Font.Size = 11
	legend.ThumbnailWidth = 30
	legend.Padding = 4
	for _, l := range lines {
		p.Add(l.line, l.marks)
		legend.Add(l.impl, l.line, l.marks)
	}
	return chart{name, p.Title.Text, linesWidth, linesHeight, func(c draw.Canvas) {
		p.Draw(draw.Crop(c, 4, -legendWidth, 4, -4))
		right := c
		right.Min.X = c.Max.X - legendWidth + 6
		legend.Draw(draw.Crop(right, 0, 0, 0, -30))
	}}
}

// halfDecades has ticks at 1, 2 and 5 times the powers of ten.
type halfDecades struct{}

// Ticks implements plot.Ticker.
func (halfDecades) Ticks(least, most float64) []plot.Tick {
	var ticks []plot.Tick
	for d := math.Pow(10, math.Floor(math.Log10(least))); d <= most; d *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := d * m; v >= least && v <= most {
				ticks = append(ticks, plot.Tick{Value: v, Label: "x"})
			}
		}
	}
	return ticks
}
