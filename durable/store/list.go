package store

import (
	"cmp"
	"strings"
)

// A Filter says which entries a list has: those that meet all of its fields that are
// not zero.
type Filter struct {
	State   State
	Handler string
	Prefix  string // of the id
	// From and To limit At: from From on, and before To.
	From, To Time
	// Error is a part of the text of the latest failure.
	Error string
}

// Match reports whether an entry meets the filter.
func (f *Filter) Match(e *Entry) bool {
	return (f.State == 0 || e.State == f.State) &&
		(f.Handler == "" || e.Handler == f.Handler) &&
		strings.HasPrefix(e.ID, f.Prefix) &&
		e.At >= f.From && (f.To == 0 || e.At < f.To) &&
		(f.Error == "" || len(e.Failures) > 0 && strings.Contains(e.Failures[len(e.Failures)-1].Text, f.Error))
}

// A Cursor stands behind an entry in the order of a list: by State, At and ID or, if the
// filter has a Prefix, by ID alone, with neither State nor At. The zero Cursor is the
// beginning. It stays good while tasks come and go.
type Cursor struct {
	State State
	At    Time
	ID    string
}

// CursorOf returns the Cursor behind an entry, in lists with the filter.
func (f *Filter) CursorOf(e *Entry) Cursor {
	if f.Prefix != "" {
		return Cursor{ID: e.ID}
	}
	return Cursor{e.State, e.At, e.ID}
}

// Compare compares two Cursors of a list.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.State, d.State), cmp.Compare(c.At, d.At), strings.Compare(c.ID, d.ID))
}

// A Page is a part of a list. A zero Next is the end.
type Page struct {
	Entries []Entry
	Next    Cursor
}
