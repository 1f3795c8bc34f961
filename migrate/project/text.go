package project

import (
	"fmt"
	"go/token"
	"io"
	"text/tabwriter"

	"github.com/tickless/tickless/migrate"
)

// Counts sums a report up.
type Counts struct {
	Sites     int `json:"sites"`     // call sites, without those that are muted
	Rewritten int `json:"rewritten"` // of them, those that can be rewritten
	Worth     int `json:"worth"`     // of these, those that are worth it
	Left      int `json:"left"`
	Muted     int `json:"muted"` // call sites of tests that nobody asked for
	Files     int `json:"files"`
	Lines     int `json:"lines"` // that are changed, in the files
}

// Counts returns the report's sums.
func (p *Project) Counts() Counts {
	c := Counts{Sites: len(p.Report.Sites), Muted: p.Report.Muted, Files: len(p.changes)}
	for _, s := range p.Report.Sites {
		switch {
		case !s.Rewritten():
			c.Left++
		case s.Use.Worth():
			c.Worth++
			c.Rewritten++
		default:
			c.Rewritten++
		}
	}
	for _, f := range p.changes {
		c.Lines += f.Lines
	}
	return c
}

// WriteReport writes which call sites are worth rewriting, which are not, and which
// are left as they are, and why.
func (p *Project) WriteReport(w io.Writer) error {
	out := &printer{w: w}
	out.section("Worth it where very many are pending at a time, and most are stopped:", p, func(s migrate.Site) bool {
		return s.Rewritten() && s.Use.Worth()
	})
	out.section("Worth it if the function runs very many times at a time:", p, func(s migrate.Site) bool {
		return s.Rewritten() && s.Use == migrate.Call
	})
	out.section("Not worth it: there are few at a time, or a goroutine waits for each:", p, func(s migrate.Site) bool {
		return s.Rewritten() && !s.Use.Worth() && s.Use != migrate.Call
	})
	out.section("Left as they are:", p, func(s migrate.Site) bool { return !s.Rewritten() })

	c := p.Counts()
	switch {
	case c.Sites == 0 && c.Muted == 0:
		out.printf("%s starts no timers.\n", p.Module)
	default:
		out.printf("%d of %s can be rewritten, on %s of %s; %d left.\n",
			c.Rewritten, number(c.Sites, "call site"), number(c.Lines, "line"), number(c.Files, "file"), c.Left)
	}
	if c.Muted > 0 {
		out.printf("Besides, %s in tests; --tests rewrites these too.\n", number(c.Muted, "call site"))
	}
	for _, w := range p.Warnings {
		out.printf("Note: %s\n", w)
	}
	if c.Rewritten > 0 {
		out.printf("Where few timers are pending nothing is won: with a few thousand package time is as fast.\nMeasure before and after.\n")
	}
	return out.err
}

// number returns a number of things.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// printer remembers the first error.
type printer struct {
	w   io.Writer
	err error
}

func (o *printer) printf(format string, args ...any) {
	if o.err == nil {
		_, o.err = fmt.Fprintf(o.w, format, args...)
	}
}

// section prints a table of the call sites that are in it, if there are any.
func (o *printer) section(title string, p *Project, in func(migrate.Site) bool) {
	table := tabwriter.NewWriter(o.w, 0, 0, 2, ' ', 0)
	any := false
	for _, s := range p.Report.Sites {
		if !in(s) {
			continue
		}
		if !any {
			o.printf("%s\n", title)
			any = true
		}
		if s.Rewritten() {
			fmt.Fprintf(table, "  %s\t%s -> %s\t%s\n", p.place(s.Pos), s.From, s.To, s.Use)
			continue
		}
		for i, r := range s.Left {
			place, from := p.place(s.Pos), s.From
			if i > 0 {
				place, from = "", ""
			}
			why := r.Text
			if r.Pos.IsValid() && r.Pos != s.Pos {
				why += " (" + p.place(r.Pos) + ")"
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\n", place, from, why)
		}
	}
	if any && o.err == nil {
		o.err = table.Flush()
		o.printf("\n")
	}
}

func (p *Project) place(pos token.Position) string {
	return fmt.Sprintf("%s:%d:%d", p.relative(pos.Filename), pos.Line, pos.Column)
}
