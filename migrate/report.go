package migrate

import (
	"cmp"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

// The import paths of the packages that replace package time and package context.
const (
	TimerPath    = "github.com/tickless/tickless/timer"
	DeadlinePath = "github.com/tickless/tickless/deadline"
)

// A Report is the result of Analyze.
type Report struct {
	// Sites are the call sites, sorted by position, except the sites that Muted counts.
	Sites []Site `json:"sites"`
	// Files are the files to rewrite, sorted by name.
	Files []File `json:"files"`
	// Muted is the number of call sites in tests that are not rewritten because
	// Options.Tests is false.
	Muted int `json:"muted"`
	// Warnings are about code that may behave differently after the rewrite.
	Warnings []Reason `json:"warnings,omitempty"`
}

// A Site is a call of a function that starts a timer. Other uses of the function, as in f
// := time.AfterFunc, are Sites too.
type Site struct {
	Pos token.Position `json:"pos"`
	// From is the function, such as time.NewTimer. To is its replacement, such as
	// timer.NewTimer, or empty if there is none.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	Use  Use    `json:"use"`
	// Left are the reasons why the call is not rewritten. It is empty if the call is
	// rewritten.
	Left []Reason `json:"left,omitempty"`

	pos token.Pos // Pos in the file set
}

// Rewritten reports whether the call site can be rewritten.
func (s Site) Rewritten() bool { return len(s.Left) == 0 }

// A Reason says why a call is not rewritten, or is a warning.
type Reason struct {
	Text string `json:"text"`
	// Pos is the position of the code that the text is about, such as code that prevents
	// the rewrite.
	Pos token.Position `json:"pos"`

	pos token.Pos
}

// A File is a source file to rewrite.
type File struct {
	Name string `json:"name"`
	// Edits are the changes, sorted by offset. They do not overlap.
	Edits []Edit `json:"edits"`
}

// An Edit replaces the bytes from offset Start up to, but not including, End with New.
type Edit struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	New   string `json:"new"`
}

// buildReport decides what to rewrite and returns the Report.
func (p *program) buildReport() *Report {
	classes := make(map[*node]bool)
	for _, s := range p.sites {
		c := s.node.representative()
		classes[c] = true
	}
	for c := range classes {
		p.decideClass(c)
	}

	r := &Report{}
	for _, s := range p.sites {
		if s.muted {
			r.Muted++
			continue
		}
		r.Sites = append(r.Sites, p.siteReport(s))
	}
	slices.SortFunc(r.Sites, func(a, b Site) int { return comparePositions(a.Pos, b.Pos) })
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		if f := p.files[name]; len(f.replacements) > 0 {
			r.Files = append(r.Files, p.rewriteFile(f))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		if f := p.files[name]; len(r.Files) > 0 && f.leakCheckPos.IsValid() && !importsPath(f.ast, goleakPath) {
			r.Warnings = append(r.Warnings, Reason{warningGoroutineCount, p.reportPosition(f.leakCheckPos), f.leakCheckPos})
		}
	}
	return r
}

const warningGoroutineCount = "goroutines are counted here, and the library keeps one for up to 20 ms after its last timer was stopped:" +
	" wait until it has ended, see \"Leak checkers\" in docs/migrating.md"

const reasonNeverStopped = "never stopped: package time frees it when nothing refers to it, package timer keeps it until it fires"

// decideClass decides whether to rewrite the timers of a class, which must be rewritten
// together. If so, it records the replacements.
func (p *program) decideClass(c *node) {
	slices.SortFunc(c.blockers, func(a, b blocker) int { return p.comparePos(a.pos, b.pos) })
	if len(c.blockers) == 0 && c.newCallPos.IsValid() && !c.stopCalled {
		c.addBlocker(c.newCallPos, reasonNeverStopped)
	}
	onlyTests, anyWorthIt := true, false
	for _, s := range c.sites {
		onlyTests = onlyTests && s.file.isTest
		anyWorthIt = anyWorthIt || s.use.Worth()
	}
	for _, m := range c.typeUses {
		onlyTests = onlyTests && m.file.isTest
	}
	if onlyTests && !p.opts.Tests {
		for _, s := range c.sites {
			s.muted = true
		}
		return
	}
	if p.opts.Worth && !anyWorthIt {
		for _, s := range c.sites {
			c.addBlocker(s.sel.Pos(), "not worth it")
		}
	}
	if len(c.blockers) > 0 {
		return
	}
	for _, s := range c.sites {
		if s.stayReason != "" {
			continue
		}
		from, _, _ := strings.Cut(s.funcName, ".")
		s.file.replacements[p.positionOf(s.sel.X.Pos()).Offset] = replacement{replacementPaths[from], int(s.sel.X.End() - s.sel.X.Pos())}
	}
	for _, m := range c.typeUses {
		m.file.replacements[p.positionOf(m.pkgIdent.Pos()).Offset] = replacement{TimerPath, len(m.pkgIdent.Name)}
	}
}

func (p *program) siteReport(s *site) Site {
	pos := p.reportPosition(s.sel.Pos())
	from, name, _ := strings.Cut(s.funcName, ".")
	result := Site{Pos: pos, From: s.funcName, Use: s.use, pos: s.sel.Pos()}
	if to := constructors[from][name]; to != "" {
		result.To = path.Base(replacementPaths[from]) + "." + to
	}
	if s.stayReason != "" {
		result.Left = append(result.Left, Reason{Text: s.stayReason, Pos: pos, pos: s.sel.Pos()})
	}
	for _, r := range p.reasonsNotRewritten(s) {
		sameText := func(o Reason) bool { return o.Text == r.Text }
		if i := slices.IndexFunc(result.Left, sameText); i < 0 {
			result.Left = append(result.Left, r)
		} else if r.Pos == pos {
			result.Left[i] = r
		}
	}
	return result
}

// reasonsNotRewritten returns why a call is not rewritten. If the only reason is another
// timer that the same type assertion may return, the text says so.
func (p *program) reasonsNotRewritten(s *site) (list []Reason) {
	newReason := func(text string, b blocker) Reason {
		return Reason{Text: text, Pos: p.reportPosition(b.pos), pos: b.pos}
	}
	classBlockers := s.node.representative().blockers
	for _, b := range classBlockers {
		if !s.viaInterface || b.pos == s.sel.Pos() || b.reason == reasonBothTypes || slices.Contains(s.blockersBeforeUnite, b) {
			list = append(list, newReason(b.reason, b))
		}
	}
	if len(list) == 0 && len(classBlockers) > 0 {
		b := classBlockers[0]
		list = append(list, newReason("a type assertion may return it, or another timer that is not rewritten: "+b.reason, b))
	}
	return list
}

func comparePositions(a, b token.Position) int {
	return cmp.Or(strings.Compare(a.Filename, b.Filename), cmp.Compare(a.Offset, b.Offset))
}
