package store

import (
	"cmp"
	"fmt"
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
}

// Match reports whether an entry meets the filter.
func (f *Filter) Match(e *Entry) bool {
	return (f.State == 0 || e.State == f.State) &&
		(f.Handler == "" || e.Handler == f.Handler) &&
		len(e.ID) >= len(f.Prefix) && e.ID[:len(f.Prefix)] == f.Prefix &&
		e.At >= f.From && (f.To == 0 || e.At < f.To)
}

// A Cursor is a place in the order of lists: a page begins behind it. The zero Cursor is the
// beginning. It stays good while tasks come and go.
type Cursor string

// CursorOf returns the place of an entry.
func CursorOf(e *Entry) Cursor { return Cursor(fmt.Sprintf("%d %d %s", e.State, e.At, e.ID)) }

// CompareEntries compares two entries in the order of lists.
func CompareEntries(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.At, b.At), strings.Compare(a.ID, b.ID))
}

// A Page is a part of a list. An empty Next is the end.
type Page struct {
	Entries []Entry
	Next    Cursor
}
