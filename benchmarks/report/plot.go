package main

import (
	"fmt"
	"html"
	"strings"
)

// A bar shows the figure of one implementation.
type bar struct {
	name  string
	value float64
}

// medianBars returns a bar with the median of row k for each implementation that has one.
func (r *results) medianBars(k rowKey, impls []string) (bars []bar) {
	for _, impl := range impls {
		if v, ok := r.median(k, impl); ok {
			bars = append(bars, bar{impl, v})
		}
	}
	return bars
}

// plotSVG returns an SVG with horizontal bars. Its colors suit light and dark backgrounds.
func plotSVG(title string, bars []bar) string {
	const width, leftMargin, rightMargin, barHeight, titleHeight = 760, 90, 80, 28, 34
	largestValue := 0.0
	for _, b := range bars {
		largestValue = max(largestValue, b.value)
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="14" fill="#777">`+"\n",
		width, titleHeight+barHeight*len(bars)+8)
	fmt.Fprintf(&s, `<text x="0" y="18">%s</text>`+"\n", html.EscapeString(title))
	for i, b := range bars {
		y := titleHeight + i*barHeight
		barLength := b.value / largestValue * (width - leftMargin - rightMargin)
		barColor := "#999"
		if b.name == "tickless" {
			barColor = "#2a7ab0"
		}
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`, leftMargin-8, y+17, html.EscapeString(b.name))
		fmt.Fprintf(&s, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, leftMargin, y+2, max(1, barLength), barHeight-8, barColor)
		fmt.Fprintf(&s, `<text x="%.1f" y="%d">%s</text>`+"\n", leftMargin+barLength+6, y+17, formatNumber(b.value))
	}
	s.WriteString("</svg>\n")
	return s.String()
}
