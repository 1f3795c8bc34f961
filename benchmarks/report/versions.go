package main

import (
	"fmt"
	"math"
	"strings"
)

// compared are the implementations in the tables of several versions of Go.
var compared = []string{"time", "tickless"}

// writeVersions writes a table with four columns for each version of Go: package
// time's figure, ours, the ratio, and that of the means. Rows of what is allocated and of mishaps stay in,
// since those too may differ.
func (t table) writeVersions(b *strings.Builder, r *results) {
	any := false
	least, most := math.MaxInt, 0
	for _, w := range t.rows {
		for _, v := range r.versions {
			for _, impl := range compared {
				if n := len(v.samples[w.key][impl]); n > 0 {
					any = true
					least, most = min(least, n), max(most, n)
				}
			}
		}
	}
	if !any {
		return
	}
	fmt.Fprintf(b, "\n**%s.**", t.title)
	if t.note != "" {
		b.WriteString(" " + t.note)
	}
	switch {
	case most == 1:
		b.WriteString(" Single runs.")
	case least < most:
		fmt.Fprintf(b, " Medians of %d to %d runs.", least, most)
	default:
		fmt.Fprintf(b, " Medians of %d runs.", most)
	}
	b.WriteString("\n\n| |")
	for _, v := range r.versions {
		for _, column := range append(compared[:len(compared):len(compared)], "ratio", "means") {
			fmt.Fprintf(b, " %s@%s |", column, strings.TrimPrefix(v.config["go"], "go"))
		}
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", 4*len(r.versions)) + "\n")
	for _, w := range t.rows {
		fmt.Fprintf(b, "| %s |", w.title)
		for _, v := range r.versions {
			w.writeVersion(b, v)
		}
		b.WriteString("\n")
	}
}

// writeVersion writes a row's four cells for one version of Go.
func (w row) writeVersion(b *strings.Builder, v *results) {
	std, ok1 := w.figure(v, "time")
	ours, ok2 := w.figure(v, "tickless")
	undecided := w.undecided(v)
	cell := func(impl string, ok bool, own, other float64) {
		switch {
		case !ok:
			b.WriteString(" |")
		case !w.plain && !undecided && ok1 && ok2 && number(own) != number(other) && (own < other) != w.higher:
			fmt.Fprintf(b, " **%s**%s |", number(own), w.beside(v, impl))
		default:
			fmt.Fprintf(b, " %s%s |", number(own), w.beside(v, impl))
		}
	}
	cell("time", ok1, std, ours)
	cell("tickless", ok2, ours, std)
	b.WriteString(w.ratioCells(v))
}
