package migrate

import (
	"cmp"
	"go/token"
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
	// Left are the reasons why the call cannot be rewritten.
	Left []Reason `json:"left,omitempty"`
	// Skipped says that the call can be rewritten, but is not: neither the call nor one that
	// shares its type is worth it, and Options.All is false.
	Skipped bool `json:"skipped,omitempty"`
}

// Rewritten reports whether the call is rewritten.
func (s Site) Rewritten() bool { return len(s.Left) == 0 && !s.Skipped }

// A Reason says why a call is not rewritten.
type Reason struct {
	Text string `json:"text"`
	// Pos is the position of the code that prevents the rewrite.
	Pos token.Position `json:"pos"`
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
	var chosen []*class
	seen := make(map[*class]bool)
	for _, s := range p.sites { // in the order of the source
		if c := s.class.representative(); !seen[c] {
			seen[c] = true
			if p.choose(c) {
				chosen = append(chosen, c)
			}
		}
	}
	p.setReplacements(p.acceptCompiling(chosen))

	r := &Report{}
	for _, s := range p.sites {
		if s.muted {
			r.Muted++
			continue
		}
		r.Sites = append(r.Sites, p.siteReport(s))
	}
	for _, f := range p.files {
		if len(f.replacements) > 0 {
			if rewritten, err := p.rewriteFile(f); err == nil {
				r.Files = append(r.Files, rewritten)
			}
		}
	}
	r.sort()
	return r
}

func (r *Report) sort() {
	slices.SortFunc(r.Sites, func(a, b Site) int { return comparePositions(a.Pos, b.Pos) })
	slices.SortFunc(r.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
}

// Add adds the report of another package.
func (r *Report) Add(o *Report) {
	r.Sites = append(r.Sites, o.Sites...)
	r.Files = append(r.Files, o.Files...)
	r.Muted += o.Muted
	r.sort()
}

const reasonNeverStopped = "never stopped: package time frees it when nothing refers to it, package timer keeps it until it fires"

// choose reports whether to rewrite the timers of a class, which must be rewritten together.
func (p *program) choose(c *class) bool {
	if len(c.blockers) == 0 && c.newCallPos.IsValid() && !c.stopCalled {
		c.addBlocker(c.newCallPos, reasonNeverStopped)
	}
	slices.SortFunc(c.blockers, func(a, b blocker) int { return comparePositions(p.positionOf(a.pos), p.positionOf(b.pos)) })
	onlyTests, mayBeWorthIt, stays := true, false, true
	for _, s := range c.sites {
		onlyTests = onlyTests && s.file.isTest
		mayBeWorthIt = mayBeWorthIt || s.use.Worth() || s.use == Call
		stays = stays && s.stayReason != ""
	}
	for _, a := range c.atoms {
		onlyTests = onlyTests && a.file.isTest
	}
	for _, s := range c.sites {
		s.muted = onlyTests && !p.opts.Tests
		s.skipped = !mayBeWorthIt && !p.opts.All && !onlyTests && len(c.blockers) == 0 && !stays
	}
	s := c.sites[0]
	return !s.muted && !s.skipped && !stays && len(c.blockers) == 0
}

// setReplacements records the replacements of the classes in the files.
func (p *program) setReplacements(classes []*class) {
	for _, c := range classes {
		for _, s := range c.sites {
			if s.stayReason == "" {
				from, _, _ := strings.Cut(s.funcName, ".")
				s.file.replacements[p.positionOf(s.sel.X.Pos()).Offset] = replacement{replacementPaths[from], int(s.sel.X.End() - s.sel.X.Pos())}
			}
		}
		for _, a := range c.atoms {
			a.file.replacements[p.positionOf(a.pkgIdent.Pos()).Offset] = replacement{TimerPath, len(a.pkgIdent.Name)}
		}
	}
}

func (p *program) siteReport(s *site) Site {
	pos := p.fset.Position(s.sel.Pos())
	from, name, _ := strings.Cut(s.funcName, ".")
	result := Site{Pos: pos, From: s.funcName, Use: s.use, Skipped: s.skipped}
	if to := constructors[from][name]; to != "" {
		result.To = path.Base(replacementPaths[from]) + "." + to
	}
	if s.stayReason != "" {
		result.Left = append(result.Left, Reason{Text: s.stayReason, Pos: pos})
	}
	for _, b := range s.class.representative().blockers {
		r := Reason{Text: b.reason, Pos: p.fset.Position(b.pos)}
		sameText := func(o Reason) bool { return o.Text == r.Text }
		if i := slices.IndexFunc(result.Left, sameText); i < 0 {
			result.Left = append(result.Left, r)
		} else if r.Pos == pos {
			result.Left[i] = r
		}
	}
	return result
}

func comparePositions(a, b token.Position) int {
	return cmp.Or(strings.Compare(a.Filename, b.Filename), cmp.Compare(a.Offset, b.Offset))
}
