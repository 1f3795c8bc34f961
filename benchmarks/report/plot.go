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

// bars returns a bar with the median of row k for each implementation that has one.
func (r *results) bars(k key, impls []string) (bars []bar) {
	for _, impl := range impls {
		if v, ok := r.median(k, impl); ok {
			bars = append(bars, bar{impl, v})
		}
	}
	return bars
}

// plot returns an SVG with horizontal bars. Its colors suit light and dark backgrounds.
func plot(title string, bars []bar) string {
	const width, leftMargin, rightMargin, barHeight, titleHeight = 760, 90, 80, 28, 34
	largest := 0.0
	for _, b := range bars {
		largest = max(largest, b.value)
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="14" fill="#777">`+"\n",
		width, titleHeight+barHeight*len(bars)+8)
	fmt.Fprintf(&s, `<text x="0" y="18">%s</text>`+"\n", html.EscapeString(title))
	for i, b := range bars {
		y := titleHeight + i*barHeight
		length := b.value / largest * (width - leftMargin - rightMargin)
		color := "#999"
		if b.name == "tickless" {
			color = "#2a7ab0"
		}
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`, leftMargin-8, y+17, html.EscapeString(b.name))
		fmt.Fprintf(&s, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, leftMargin, y+2, max(1, length), barHeight-8, color)
		fmt.Fprintf(&s, `<text x="%.1f" y="%d">%s</text>`+"\n", leftMargin+length+6, y+17, formatNumber(b.value))
	}
	s.WriteString("</svg>\n")
	return s.String()
}
