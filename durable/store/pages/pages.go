// Package pages makes the pages of a list for stores that have an index for each order.
package pages

import (
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// An Order is the order of an index.
type Order uint8

const (
	ByTime Order = iota // the tasks with a value in the column state, by At and id
	Noted               // the same, only those that have failed or are paused
	ByID                // the tasks whose ids begin with the filter's Prefix
	ByEnd               // the finished runs that are kept, the latest first
)

// A Query asks for the first Limit tasks in an order that match the Filter and come after a
// position.
type Query struct {
	store.Filter
	Order       Order
	ColumnState int64 // for ByTime and Noted
	After       store.Cursor
	Limit       int
}

// List returns a page of at most limit tasks, and the position after it, or zero at the end
// of the list. pending are the values of the column state of Pending tasks.
//
// read returns the tasks of a query. If it stops before it has found Limit tasks, although
// there may be more, it also returns the position where it has stopped.
func List[T any](f *store.Filter, c store.Cursor, limit int, now store.Time, pending []int64, entryOf func(T) *store.Entry, read func(q *Query) ([]T, store.Cursor)) (found []T, next store.Cursor) {
	q := Query{Filter: *f, After: c, Limit: limit + 1}
	switch {
	case f.Runs:
		q.Order = ByEnd
		found, next = read(&q)
	case f.Prefix != "":
		q.Order = ByID
		found, next = read(&q)
	default:
		for state := max(store.Pending, c.State); state <= store.Past && len(found) <= limit && next == (store.Cursor{}); state++ {
			if f.State == 0 || f.State == state {
				var more []T
				q := Query{Filter: *f, After: c, Limit: limit + 1 - len(found)}
				more, next = listState(q, state, now, pending, entryOf, read)
				found = append(found, more...)
			}
		}
	}
	if len(found) > limit {
		return found[:limit], f.CursorOf(entryOf(found[limit-1]))
	}
	return found, next
}

// listState returns tasks of one State, in order.
func listState[T any](q Query, state store.State, now store.Time, pending []int64, entryOf func(T) *store.Entry, read func(q *Query) ([]T, store.Cursor)) (found []T, next store.Cursor) {
	if state > q.After.State {
		q.After = store.Cursor{State: state, At: -1} // before the first, which may have At 0 and any id
	}
	if q.Error != "" || q.Paused {
		q.Order = Noted
	}
	values := []int64{int64(state)}
	switch state {
	case store.Pending:
		values = pending
	case store.Past:
		q.From = max(q.From, now+1) // others have expired
	}
	for _, q.ColumnState = range values {
		part := q // read may change it
		more, end := read(&part)
		found = append(found, more...)
		if end != (store.Cursor{}) && (next == (store.Cursor{}) || end.Compare(next) < 0) {
			next = end
		}
	}
	position := func(t T) store.Cursor { return q.CursorOf(entryOf(t)) }
	slices.SortFunc(found, func(a, b T) int { return position(a).Compare(position(b)) })
	if next != (store.Cursor{}) {
		found = slices.DeleteFunc(found, func(t T) bool { return position(t).Compare(next) > 0 })
	}
	return found, next
}
