package store

import (
	"cmp"
	"strings"
)

// A Filter selects the entries that match all of its nonzero fields.
type Filter struct {
	State   State
	Handler string
	Group   string
	Prefix  string // of the id
	// From and To select a range of At: From <= At < To.
	From, To Time
	// DueFrom and DueTo select a range of Due in the same way.
	DueFrom, DueTo Time
	// Error is a substring of the latest failure's text.
	Error string
	// Paused selects tasks that PauseTask or Item.Paused has paused.
	Paused bool
	// Runs selects the finished runs that are kept, without head entries, and lists the
	// latest first. From and To are then about when they ended. State must be zero or Past.
	Runs bool
}

// Match reports whether an entry matches the filter.
func (f *Filter) Match(e *Entry) bool {
	at := e.At
	if f.Runs {
		_, ended, _, ok := ParseRun(e.Record)
		if at = ended; !ok || e.State != Past || !strings.HasPrefix(e.ID, RunsPrefix(KeyOf(e.ID))) {
			return false
		}
	}
	return (f.State == 0 || e.State == f.State) &&
		(f.Handler == "" || e.Handler == f.Handler) && (!f.Paused || e.Paused) &&
		(f.Group == "" || e.Group == f.Group) &&
		strings.HasPrefix(e.ID, f.Prefix) &&
		at >= f.From && (f.To == 0 || at < f.To) &&
		e.Due >= f.DueFrom && (f.DueTo == 0 || e.Due < f.DueTo) &&
		(f.Error == "" || len(e.Failures) > 0 && strings.Contains(e.Failures[len(e.Failures)-1].Text, f.Error))
}

// A Cursor is the position just after an entry in a list. The zero Cursor is the beginning.
// A Cursor stays valid while entries are added and removed.
//
// A list is ordered by State, At and ID. If the filter has a Prefix, the list is ordered by
// ID alone, and its Cursors have only an ID. With Runs, the order is by the time of the end
// and ID, backwards; At is the time of the end.
type Cursor struct {
	State State
	At    Time
	ID    string
}

// CursorOf returns the Cursor just after an entry, for a list with this filter.
func (f *Filter) CursorOf(e *Entry) Cursor {
	switch {
	case f.Runs:
		_, ended, _, _ := ParseRun(e.Record)
		return Cursor{Past, ended, e.ID}
	case f.Prefix != "":
		return Cursor{ID: e.ID}
	}
	return Cursor{e.State, e.At, e.ID}
}

// Compare orders two Cursors of a list with this filter.
func (f *Filter) Compare(a, b Cursor) int {
	if f.Runs && a != (Cursor{}) && b != (Cursor{}) {
		a, b = b, a
	}
	return a.Compare(b)
}

// Compare orders two Cursors of a list without Runs.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.State, d.State), cmp.Compare(c.At, d.At), strings.Compare(c.ID, d.ID))
}

// A Page is a part of a list. Next is zero on the last page.
type Page struct {
	Entries []Entry
	Next    Cursor
}
