package durable

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Filter selects the tasks that match all of its nonzero fields.
type Filter struct {
	State   State
	Handler string
	Group   string
	Prefix  string // of the ID, and so of the key
	// From and To limit Info.At: From <= At < To.
	From, To time.Time
	// DueFrom and DueTo limit Info.Due in the same way.
	DueFrom, DueTo time.Time
	// Error is a substring of the latest failure's text.
	Error string
	// Paused selects tasks that are paused: see [Client.PauseTask].
	Paused bool
}

func (f *Filter) storeFilter() store.Filter {
	from := func(t time.Time) store.Time {
		if t.IsZero() {
			return 0
		}
		return store.TimeOf(t)
	}
	to := func(t time.Time) store.Time {
		if t.IsZero() {
			return 0
		}
		return max(1, store.TimeOf(t)) // 0 is no limit
	}
	return store.Filter{State: f.State, Handler: f.Handler, Group: f.Group, Prefix: f.Prefix, Error: f.Error, Paused: f.Paused,
		From: from(f.From), To: to(f.To), DueFrom: from(f.DueFrom), DueTo: to(f.DueTo)}
}

// List iterates over the tasks that match a filter, ordered by State, At and ID, or
// only by ID if the filter has a Prefix. Tasks that change during the iteration may be
// missed or appear twice.
//
// An error without an ID is an error of the store, and ends the iteration. An error
// with an ID means that this task cannot be decoded, and the iteration continues.
//
// List reads pages of some hundred tasks. For each page, memstore reads all tasks, and
// redisstore with a Prefix reads the IDs of all tasks.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		const readAhead = 256
		for e, err := range c.listEntries(ctx, f.storeFilter(), store.Cursor{}, readAhead, nil) {
			if err != nil {
				yield(Info{}, err)
				return
			}
			if !isRunCounter(&e) && !yield(infoOf(&e)) {
				return
			}
		}
	}
}

// A Cursor is a position in a list. It does not expire, and is safe in a URL. The empty
// Cursor is the beginning.
type Cursor string

// A Page is a part of a list. Next is empty on the last page.
type Page struct {
	Tasks []Info `json:"tasks"`
	Next  Cursor `json:"next,omitempty"`
}

// Page returns the next tasks of a [Client.List], at most limit, which must be from 1
// to 1000. after is empty, or the Next of a Page with the same filter. Tasks that
// cannot be decoded are included, with the fields that are known.
//
// A Page looks at no more than about 10,000 tasks of a shard that do not match the filter.
// So it may have few tasks, or none, and yet a Next.
func (c *Client) Page(ctx context.Context, f Filter, after Cursor, limit int) (Page, error) {
	var p Page
	var err error
	p.Next, err = c.readPage(ctx, f.storeFilter(), after, limit, func(e *store.Entry) bool {
		if isRunCounter(e) {
			return false
		}
		info, _ := infoOf(e)
		p.Tasks = append(p.Tasks, info)
		return true
	})
	if err != nil {
		return Page{}, err
	}
	return p, nil
}

// readPage calls add with entries until it has added limit entries, and returns the Cursor of
// the next page. add returns false for an entry that it skips.
func (c *Client) readPage(ctx context.Context, f store.Filter, after Cursor, limit int, add func(e *store.Entry) bool) (Cursor, error) {
	if limit < 1 || limit > store.MaxPage {
		return "", invalidError("the limit must be from 1 to %d, got %d", store.MaxPage, limit)
	}
	start, err := after.parse()
	if err != nil {
		return "", err
	}
	var last, gap store.Cursor
	n := 0
	for e, err := range c.listEntries(ctx, f, start, limit, &gap) {
		if err != nil {
			return "", err
		}
		if n == limit {
			return cursorOf(last), nil
		}
		if add(&e) {
			n, last = n+1, f.CursorOf(&e)
		}
	}
	if gap != (store.Cursor{}) {
		return cursorOf(gap), nil
	}
	return "", nil
}

func cursorOf(c store.Cursor) Cursor {
	return Cursor(base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", c.State, c.At, c.ID)))
}

func (c Cursor) parse() (x store.Cursor, err error) {
	if c == "" {
		return x, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(string(c))
	if fields := strings.SplitN(string(b), " ", 3); err == nil && len(fields) == 3 {
		x.ID = fields[2]
		_, err = fmt.Sscan(fields[0]+" "+fields[1], &x.State, &x.At)
	}
	if err != nil || x.ID == "" || x.State > store.Past {
		return x, invalidError("%q is not a cursor", c)
	}
	return x, nil
}

// A shardList iterates over the entries of one shard.
type shardList struct {
	shard           int
	filter          *store.Filter
	bufferedEntries []store.Entry // read from the store, but not returned yet
	nextPage        store.Cursor  // where the next page starts
	atEnd           bool          // the shard has no more pages
}

// position returns the position of the next entry, or of the next page if there is a gap.
func (s *shardList) position() store.Cursor {
	if len(s.bufferedEntries) > 0 {
		return s.filter.CursorOf(&s.bufferedEntries[0])
	}
	return s.nextPage
}

func (s *shardList) comparePosition(t *shardList) int {
	return s.filter.Compare(s.position(), t.position())
}

func (s *shardList) isOver() bool { return len(s.bufferedEntries) == 0 && s.atEnd }

// fillBuffer reads the shard's next page if s.bufferedEntries is empty. With leaveGaps it
// reads only one page, even if that is empty.
func (s *shardList) fillBuffer(ctx context.Context, c *Client, pageSize int, leaveGaps bool) error {
	for len(s.bufferedEntries) == 0 && !s.atEnd {
		p, err := c.store.List(ctx, s.shard, *s.filter, s.nextPage, pageSize)
		if err != nil {
			return clientError(err)
		}
		s.bufferedEntries, s.nextPage, s.atEnd = p.Entries, p.Next, p.Next == store.Cursor{}
		if leaveGaps {
			break
		}
	}
	return nil
}

// listEntries iterates over the entries of all shards after a Cursor, in order. It ends
// at the first error. It reads about readAhead entries ahead.
//
// If gap is not nil, the iteration also ends at the first page of a shard without entries,
// and sets gap to the position there.
func (c *Client) listEntries(ctx context.Context, f store.Filter, after store.Cursor, readAhead int, gap *store.Cursor) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		n := c.store.Shards()
		pageSize := min(max(2*readAhead/n, 10), readAhead)
		if f.Prefix != "" || f.Error != "" {
			pageSize = max(pageSize, 200) // a short page may cost as much as a long one
		}
		shardLists := make([]*shardList, n)
		for i := range shardLists { // one by one, so that the store also serves others
			shardLists[i] = &shardList{shard: i, filter: &f, nextPage: after}
			if err := shardLists[i].fillBuffer(ctx, c, pageSize, gap != nil); err != nil {
				yield(store.Entry{}, err)
				return
			}
		}
		shardLists = slices.DeleteFunc(shardLists, (*shardList).isOver)
		slices.SortFunc(shardLists, (*shardList).comparePosition)
		for len(shardLists) > 0 {
			firstList := shardLists[0]
			if len(firstList.bufferedEntries) == 0 {
				*gap = firstList.nextPage
				return
			}
			e := firstList.bufferedEntries[0]
			firstList.bufferedEntries = firstList.bufferedEntries[1:]
			if !yield(e, nil) {
				return
			}
			if err := firstList.fillBuffer(ctx, c, pageSize, gap != nil); err != nil {
				yield(store.Entry{}, err)
				return
			}
			if firstList.isOver() {
				shardLists = shardLists[1:]
				continue
			}
			i, _ := slices.BinarySearchFunc(shardLists[1:], firstList, (*shardList).comparePosition)
			copy(shardLists, shardLists[1:1+i])
			shardLists[i] = firstList
		}
	}
}
