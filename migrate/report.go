package migrate

import (
	"cmp"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

// The import paths of the packages that are migrated to.
const (
	TimerPath    = "github.com/tickless/tickless/timer"
	DeadlinePath = "github.com/tickless/tickless/deadline"
)

// A Report is what Analyze has found.
type Report struct {
	// Sites are the call sites, by position. Those in tests that are left alone
	// because nobody asked for them are only counted.
	Sites []Site `json:"sites"`
	// Files are the files that can be rewritten, by name.
	Files []File `json:"files"`
	// Muted is the number of call sites in tests that are left alone.
	Muted int `json:"muted"`
	// Warnings are places that may do something else once the files are rewritten.
	Warnings []Reason `json:"warnings,omitempty"`
}

// A Site is a call that starts a timer, or a function that does, used as a value.
type Site struct {
	Pos token.Position `json:"pos"`
	// From and To are the function, and what takes its place: time.NewTimer and
	// timer.NewTimer.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	Use  Use    `json:"use"`
	// Left are the reasons why the call is left as it is. There are none if it is
	// rewritten.
	Left []Reason `json:"left,omitempty"`

	// pos is Pos as a file set has it.
	pos token.Pos
}

// Rewritten reports whether the call site can be rewritten.
func (s Site) Rewritten() bool { return len(s.Left) == 0 }

// A Reason says why a call is left as it is.
type Reason struct {
	Text string `json:"text"`
	// Pos is the place that stands in the way: the call itself, or one that its
	// timer gets to.
	Pos token.Position `json:"pos"`

	pos token.Pos
}

// A File is a source file that can be rewritten.
type File struct {
	Name string `json:"name"`
	// Edits do not overlap, and are in the order of their offsets.
	Edits []Edit `json:"edits"`
}

// An Edit replaces the bytes from offset Start up to End.
type Edit struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	New   string `json:"new"`
}

// report decides about the classes and collects what is to be done.
func (p *program) report() *Report {
	classes := make(map[*node]bool)
	for _, s := range p.sites {
		c := s.node.class()
		classes[c] = true
	}
	for c := range classes {
		p.settle(c)
	}

	r := &Report{}
	for _, s := range p.sites {
		if s.mute {
			r.Muted++
			continue
		}
		r.Sites = append(r.Sites, p.siteReport(s))
	}
	slices.SortFunc(r.Sites, func(a, b Site) int { return comparePositions(a.Pos, b.Pos) })
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		if f := p.files[name]; len(f.cuts) > 0 {
			r.Files = append(r.Files, p.rewrite(f))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		if f := p.files[name]; len(r.Files) > 0 && f.leak.IsValid() && !importsPath(f.ast, goleak) {
			r.Warnings = append(r.Warnings, Reason{goroutinesCounted, p.source(f.leak), f.leak})
		}
	}
	return r
}

const goroutinesCounted = "goroutines are counted here, and the library keeps one for up to 20 ms after its last timer was stopped:" +
	" wait until it is gone, see \"Leak checkers\" in docs/migrating.md"

const neverStopped = "never stopped: in package time it is garbage when nobody refers to it any more, here it stays until it fires"

// settle decides about a class, and notes the replacements if it is rewritten.
func (p *program) settle(c *node) {
	slices.SortFunc(c.blocks, func(a, b block) int { return p.compare(a.pos, b.pos) })
	if len(c.blocks) == 0 && c.news.IsValid() && !c.stopped {
		c.block(c.news, neverStopped)
	}
	tests, worth := true, false
	for _, s := range c.sites {
		tests = tests && s.file.test
		worth = worth || s.use.Worth()
	}
	for _, m := range c.marks {
		tests = tests && m.file.test
	}
	if tests && !p.opts.Tests {
		for _, s := range c.sites {
			s.mute = true
		}
		return
	}
	if p.opts.Worth && !worth {
		for _, s := range c.sites {
			c.block(s.sel.Pos(), "not worth it")
		}
	}
	if len(c.blocks) > 0 {
		return
	}
	for _, s := range c.sites {
		if s.stays != "" {
			continue
		}
		from, _, _ := strings.Cut(s.call, ".")
		s.file.cuts[p.position(s.sel.X.Pos()).Offset] = cut{targets[from], int(s.sel.X.End() - s.sel.X.Pos())}
	}
	for _, m := range c.marks {
		m.file.cuts[p.position(m.ident.Pos()).Offset] = cut{TimerPath, len(m.ident.Name)}
	}
}

func (p *program) siteReport(s *site) Site {
	pos := p.source(s.sel.Pos())
	from, name, _ := strings.Cut(s.call, ".")
	out := Site{Pos: pos, From: s.call, Use: s.use, pos: s.sel.Pos()}
	if to := constructors[from][name]; to != "" {
		out.To = path.Base(targets[from]) + "." + to
	}
	if s.stays != "" {
		out.Left = append(out.Left, Reason{Text: s.stays, Pos: pos, pos: s.sel.Pos()})
	}
	for _, r := range p.reasons(s) {
		same := func(o Reason) bool { return o.Text == r.Text }
		if i := slices.IndexFunc(out.Left, same); i < 0 {
			out.Left = append(out.Left, r)
		} else if r.Pos == pos {
			out.Left[i] = r
		}
	}
	return out
}

// reasons returns what stands in the way of a call. What does for its interface values
// only, because of another, comes with that explanation.
func (p *program) reasons(s *site) (list []Reason) {
	reason := func(text string, b block) Reason { return Reason{Text: text, Pos: p.source(b.pos), pos: b.pos} }
	blocks := s.node.class().blocks
	for _, b := range blocks {
		if !s.boxed || b.pos == s.sel.Pos() || b.reason == bothTypes || slices.Contains(s.own, b) {
			list = append(list, reason(b.reason, b))
		}
	}
	if len(list) == 0 && len(blocks) > 0 {
		b := blocks[0]
		list = append(list, reason("a type assertion may get it, or another that is left: "+b.reason, b))
	}
	return list
}

func comparePositions(a, b token.Position) int {
	return cmp.Or(strings.Compare(a.Filename, b.Filename), cmp.Compare(a.Offset, b.Offset))
}
