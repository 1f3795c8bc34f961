package store

import (
	"cmp"
	"strings"
)

// A Filter selects the entries that match all of its nonzero fields.
type Filter struct {
	State   State
	Handler string
	Prefix  string // of the id
	// From and To limit At: At is not before From, and before To.
	From, To Time
	// Error is a substring of the latest failure's text.
	Error string
}

// Match reports whether an entry matches the filter.
func (f *Filter) Match(e *Entry) bool {
	return (f.State == 0 || e.State == f.State) &&
		(f.Handler == "" || e.Handler == f.Handler) &&
		strings.HasPrefix(e.ID, f.Prefix) &&
		e.At >= f.From && (f.To == 0 || e.At < f.To) &&
		(f.Error == "" || len(e.Failures) > 0 && strings.Contains(e.Failures[len(e.Failures)-1].Text, f.Error))
}

// A Cursor is the position after an entry in a list. Lists are ordered by State, At and
// ID or, if the filter has a Prefix, by ID alone: State and At are then zero. The zero
// Cursor is the beginning. A Cursor stays valid while tasks come and go.
type Cursor struct {
	State State
	At    Time
	ID    string
}

// CursorOf returns the Cursor after an entry, in lists with this filter.
func (f *Filter) CursorOf(e *Entry) Cursor {
	if f.Prefix != "" {
		return Cursor{ID: e.ID}
	}
	return Cursor{e.State, e.At, e.ID}
}

// Compare orders two Cursors of a list.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.State, d.State), cmp.Compare(c.At, d.At), strings.Compare(c.ID, d.ID))
}

// A Page is a part of a list. Next is zero on the last page.
type Page struct {
	Entries []Entry
	Next    Cursor
}
