package main

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A group is one bar of every implementation.
type group struct {
	label string
	key   key
}

func cut(s string) (name, v string) {
	name, v, _ = strings.Cut(s, "=")
	return name, v
}

const (
	barHeight = vg.Length(13)
	pageWidth = vg.Length(560)
)

// A bar is one figure. The second of a group is hatched.
type bar struct {
	y      float64
	value  float64
	label  string
	color  color.RGBA
	hatch  bool
	atZero float64 // where the axis begins
}

// barChart draws a bar for each implementation and group, the best on top.
func barChart(r *results, name, title, unit string, groups []group) (chart, bool) {
	groups = slices.DeleteFunc(groups, func(g group) bool { return len(r.samples[g.key]) == 0 })
	if len(groups) == 0 {
		return chart{}, false
	}
	var impls []string
	for _, impl := range r.impls {
		if _, ok := r.median(groups[0].key, impl); ok {
			impls = append(impls, impl)
		}
	}
	first := func(impl string) float64 {
		v, _ := r.median(groups[0].key, impl)
		if v < 0 { // late by less than nothing: early, which is no merit
			return math.Inf(1)
		}
		return v
	}
	slices.SortStableFunc(impls, func(a, b string) int { return cmp.Compare(first(a), first(b)) })

	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font.Size = 13
	p.Title.Padding = 6
	least, most := math.Inf(1), 0.0
	var bars []*bar
	var ticks []plot.Tick
	each := len(groups)
	for i, impl := range impls {
		top := float64((len(impls) - i) * (each + 1))
		ticks = append(ticks, plot.Tick{Value: top - float64(each-1)/2, Label: impl})
		for g, gr := range groups {
			v, ok := r.median(gr.key, impl)
			if !ok {
				continue
			}
			label := number(v)
			if v < 0 {
				label += ": early"
			}
			bars = append(bars, &bar{y: top - float64(g), value: v, label: label, color: barColor(impl), hatch: g == 1})
			if v > 0 {
				least = min(least, v)
			}
			most = max(most, v)
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Length = 0
	for _, t := range ticks {
		p.Y.Padding = max(p.Y.Padding, 5+wider(textStyle(11).Width(t.Label)))
	}
	p.Y.LineStyle.Width = 0
	p.Y.Tick.Label.Font.Size = 11
	p.Y.Min, p.Y.Max = 0.4, float64(len(impls)*(each+1))+0.8

	p.X.Label.Text = unit
	p.X.Min, p.X.Max = 0, most*1.18
	if p.X.Max == 0 {
		p.X.Max = 1
	}
	p.X.Tick.Marker = thousandTicks{plot.DefaultTicks{}}
	if most > 30*least {
		p.X.Label.Text += ", logarithmic scale"
		p.X.Scale = plot.LogScale{}
		p.X.Min = math.Pow(10, math.Floor(math.Log10(least*0.7)))
		p.X.Max = most * math.Pow(most/p.X.Min, 0.16)
		p.X.Tick.Marker = thousandTicks{plot.LogTicks{Prec: -1}}
	}
	for _, b := range bars {
		b.atZero = p.X.Min
	}
	p.X.Label.TextStyle.Font.Size = 11
	p.X.Tick.Label.Font.Size = 10
	p.Add(gridX{})
	for _, b := range bars {
		p.Add(b)
	}

	legend := plot.NewLegend()
	if each > 1 {
		for g, gr := range groups {
			legend.Add(gr.label, &bar{color: theirs, hatch: g == 1})
		}
		legend.TextStyle.Font.Size = 11
		legend.ThumbnailWidth = 24
		legend.Padding = 3
	}
	height := 66 + barHeight*vg.Length(len(impls)*(each+1))
	if each > 1 {
		height += 20
	}
	return chart{name, title, pageWidth, height, func(c draw.Canvas) {
		if each == 1 {
			p.Draw(draw.Crop(c, 4, -4, 4, -4))
			return
		}
		p.Draw(draw.Crop(c, 4, -4, 24, -4))
		side(legend, groups, draw.Crop(c, 4, -4, 4, 0))
	}}, true
}

// side draws the legend's entries side by side along the bottom of c.
func side(_ plot.Legend, groups []group, c draw.Canvas) {
	style := textStyle(11)
	x := c.Min.X + 130
	for g, gr := range groups {
		box := c
		box.Min.X, box.Max.X = x, x+24
		box.Min.Y, box.Max.Y = c.Min.Y+2, c.Min.Y+13
		(&bar{color: theirs, hatch: g == 1}).Thumbnail(&box)
		style.YAlign = draw.YBottom
		c.FillText(style, vg.Point{X: x + 30, Y: c.Min.Y + 2}, gr.label)
		x += 30 + style.Width(gr.label) + wider(style.Width(gr.label)) + 24
	}
}

func textStyle(size font.Length) draw.TextStyle {
	return text.Style{
		Color:   ink,
		Font:    font.From(plot.DefaultFont, size),
		Handler: plot.DefaultTextHandler,
	}
}

// DataRange implements plot.DataRanger. The range of the axes is set by hand.
func (b *bar) DataRange() (xmin, xmax, ymin, ymax float64) {
	return math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
}

// Plot implements plot.Plotter.
func (b *bar) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	x0, y := toX(b.atZero), toY(b.y)
	x1 := x0
	if b.value > b.atZero {
		x1 = toX(b.value)
		b.fill(&c, x0, x1, y-barHeight*0.45, y+barHeight*0.45)
	}
	style := textStyle(10)
	style.YAlign = draw.YCenter
	c.FillText(style, vg.Point{X: x1 + 4, Y: y}, b.label)
}

// Thumbnail implements plot.Thumbnailer.
func (b *bar) Thumbnail(c *draw.Canvas) { b.fill(c, c.Min.X, c.Max.X, c.Min.Y, c.Max.Y) }

func (b *bar) fill(c *draw.Canvas, x0, x1, y0, y1 vg.Length) {
	corners := []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}
	if !b.hatch {
		c.FillPolygon(b.color, corners)
		return
	}
	c.FillPolygon(paler(b.color), corners)
	line := draw.LineStyle{Color: b.color, Width: 1.2}
	height := y1 - y0
	for x := x0 - height; x < x1; x += 5 { // from the lower left to the upper right
		from, to := max(x, x0), min(x+height, x1)
		if from < to {
			c.StrokeLine2(line, from, y0+from-x, to, y0+to-x)
		}
	}
	c.StrokeLines(draw.LineStyle{Color: b.color, Width: 0.8}, append(corners, corners[0]))
}

// gridX draws a faint line at each labelled tick of the X axis.
type gridX struct{}

// Plot implements plot.Plotter.
func (gridX) Plot(c draw.Canvas, p *plot.Plot) {
	toX, _ := p.Transforms(&c)
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if x := toX(t.Value); !t.IsMinor() && x >= c.Min.X && x <= c.Max.X {
			c.StrokeLine2(draw.LineStyle{Color: grid, Width: 0.7}, x, c.Min.Y, x, c.Max.Y)
		}
	}
}

// gridY is gridX for the Y axis.
type gridY struct{}

// Plot implements plot.Plotter.
func (gridY) Plot(c draw.Canvas, p *plot.Plot) {
	_, toY := p.Transforms(&c)
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if y := toY(t.Value); !t.IsMinor() && y >= c.Min.Y && y <= c.Max.Y {
			c.StrokeLine2(draw.LineStyle{Color: grid, Width: 0.7}, c.Min.X, y, c.Max.X, y)
		}
	}
}

// thousandTicks labels the ticks of another as tables write numbers.
type thousandTicks struct{ plot.Ticker }

// Ticks implements plot.Ticker.
func (t thousandTicks) Ticks(least, most float64) []plot.Tick {
	ticks := t.Ticker.Ticks(least, most)
	for i := range ticks {
		if !ticks[i].IsMinor() {
			ticks[i].Label = number(ticks[i].Value)
		}
	}
	return ticks
}
