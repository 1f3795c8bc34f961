package machine

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// Compare orders entries as lists do.
func Compare(a, b *store.Entry) int {
	return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.At, b.At), strings.Compare(a.ID, b.ID))
}

// CursorOf returns the cursor behind an entry.
func CursorOf(e *store.Entry) store.Cursor {
	return store.Cursor(fmt.Sprintf("%d %d %s", e.State, e.At, e.ID))
}

// ParseCursor returns an entry with what Compare needs of the one that a cursor is behind.
// It is the zero Entry, which is before all others, for the beginning.
func ParseCursor(c store.Cursor) (e store.Entry, err error) {
	if c == "" {
		return e, nil
	}
	part := strings.SplitN(string(c), " ", 3)
	if len(part) == 3 {
		e.ID = part[2]
		if _, err = fmt.Sscan(part[0]+" "+part[1], &e.State, &e.At); err == nil {
			return e, nil
		}
	}
	return e, fmt.Errorf("%w: %q is no cursor of this store", store.ErrInvalid, c)
}
