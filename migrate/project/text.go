package project

import (
	"fmt"
	"go/token"
	"io"
	"text/tabwriter"

	"github.com/tickless/tickless/migrate"
)

// Counts are the totals of a report.
type Counts struct {
	Sites     int `json:"sites"`     // call sites: Rewritten + Skipped + Left
	Rewritten int `json:"rewritten"` // call sites that Fix rewrites
	Worth     int `json:"worth"`     // of Rewritten: call sites that are worth it
	Skipped   int `json:"skipped"`   // call sites that are not worth it, and that Options.All would add
	Left      int `json:"left"`      // call sites that cannot be rewritten
	Muted     int `json:"muted"`     // call sites in tests that Options.Tests would add
	Files     int `json:"files"`     // files that change
	Lines     int `json:"lines"`     // lines that change
}

// Counts returns the totals of the report.
func (p *Project) Counts() Counts {
	c := Counts{Sites: len(p.Report.Sites), Muted: p.Report.Muted, Files: len(p.changes)}
	for _, s := range p.Report.Sites {
		switch {
		case s.Skipped:
			c.Skipped++
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

// WriteReport writes a readable report: which call sites are worth rewriting, and which
// cannot be rewritten and why.
func (p *Project) WriteReport(w io.Writer) error {
	out := &printer{w: w}
	out.writeSection("Worth it where very many are pending at a time, and most are stopped:", p, func(s migrate.Site) bool {
		return s.Rewritten() && s.Use.Worth()
	})
	out.writeSection("Worth it if the function runs very many times at a time:", p, func(s migrate.Site) bool {
		return s.Rewritten() && s.Use == migrate.Call
	})
	out.writeSection("Not worth it, but rewritten with the others:", p, func(s migrate.Site) bool {
		return s.Rewritten() && !s.Use.Worth() && s.Use != migrate.Call
	})
	out.writeSection("Not worth it: there are few at a time, or a goroutine waits for each; --all rewrites these too:", p, func(s migrate.Site) bool {
		return s.Skipped
	})
	out.writeSection("Left as they are:", p, func(s migrate.Site) bool { return len(s.Left) > 0 })

	c := p.Counts()
	switch {
	case c.Sites == 0 && c.Muted == 0:
		out.printf("%s starts no timers.\n", p.Module)
	default:
		out.printf("%d of %s can be rewritten, on %s of %s; %d not worth it; %d left.\n",
			c.Rewritten, plural(c.Sites, "call site"), plural(c.Lines, "line"), plural(c.Files, "file"), c.Skipped, c.Left)
	}
	if c.Muted > 0 {
		out.printf("Not counted: %s in tests; --tests rewrites these too.\n", plural(c.Muted, "call site"))
	}
	for _, w := range p.Warnings {
		out.printf("Note: %s\n", w)
	}
	if c.Rewritten > 0 {
		out.printf("A rewrite gains nothing where few timers are pending: up to a few thousand, package time is as fast.\nMeasure before and after.\n")
	}
	return out.err
}

// plural returns n with the noun, as in "1 line" or "2 lines".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// printer writes to w until the first error and keeps that error.
type printer struct {
	w   io.Writer
	err error
}

func (o *printer) printf(format string, args ...any) {
	if o.err == nil {
		_, o.err = fmt.Fprintf(o.w, format, args...)
	}
}

// writeSection prints a title and a table of the call sites for which include returns
// true. It prints nothing if there are none.
func (o *printer) writeSection(title string, p *Project, include func(migrate.Site) bool) {
	table := tabwriter.NewWriter(o.w, 0, 0, 2, ' ', 0)
	titlePrinted := false
	for _, s := range p.Report.Sites {
		if !include(s) {
			continue
		}
		if !titlePrinted {
			o.printf("%s\n", title)
			titlePrinted = true
		}
		if len(s.Left) == 0 {
			fmt.Fprintf(table, "  %s\t%s -> %s\t%s\n", p.positionText(s.Pos), s.From, s.To, s.Use)
			continue
		}
		for i, r := range s.Left {
			position, from := p.positionText(s.Pos), s.From
			if i > 0 {
				position, from = "", ""
			}
			reasonText := r.Text
			if r.Pos.IsValid() && r.Pos != s.Pos {
				reasonText += " (" + p.positionText(r.Pos) + ")"
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\n", position, from, reasonText)
		}
	}
	if titlePrinted && o.err == nil {
		o.err = table.Flush()
		o.printf("\n")
	}
}

func (p *Project) positionText(pos token.Position) string {
	return fmt.Sprintf("%s:%d:%d", p.relativePath(pos.Filename), pos.Line, pos.Column)
}
