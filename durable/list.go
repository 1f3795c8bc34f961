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
	Prefix  string // of the ID, and so of the key
	// From and To limit Info.At: From <= At < To.
	From, To time.Time
	// Error is a substring of the latest failure's text.
	Error string
}

func (f *Filter) storeFilter() store.Filter {
	x := store.Filter{State: f.State, Handler: f.Handler, Prefix: f.Prefix, Error: f.Error}
	if !f.From.IsZero() {
		x.From = store.TimeOf(f.From)
	}
	if !f.To.IsZero() {
		x.To = max(1, store.TimeOf(f.To)) // 0 is no limit
	}
	return x
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
		for e, err := range c.listEntries(ctx, f.storeFilter(), store.Cursor{}, readAhead) {
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
func (c *Client) Page(ctx context.Context, f Filter, after Cursor, limit int) (Page, error) {
	if limit < 1 || limit > store.MaxPage {
		return Page{}, invalidError("the limit must be from 1 to %d, got %d", store.MaxPage, limit)
	}
	start, err := after.parse()
	if err != nil {
		return Page{}, err
	}
	var p Page
	var lastCursor store.Cursor
	filter := f.storeFilter()
	for e, err := range c.listEntries(ctx, filter, start, limit) {
		if err != nil {
			return Page{}, err
		}
		if len(p.Tasks) == limit {
			p.Next = cursorOf(lastCursor)
			break
		}
		if isRunCounter(&e) {
			continue
		}
		info, _ := infoOf(&e)
		p.Tasks, lastCursor = append(p.Tasks, info), filter.CursorOf(&e)
	}
	return p, nil
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

func (s *shardList) compareNextEntry(t *shardList) int {
	return s.filter.CursorOf(&s.bufferedEntries[0]).Compare(s.filter.CursorOf(&t.bufferedEntries[0]))
}

// fillBuffer reads the shard's next page if s.bufferedEntries is empty.
func (s *shardList) fillBuffer(ctx context.Context, c *Client, pageSize int) error {
	for len(s.bufferedEntries) == 0 && !s.atEnd {
		p, err := c.store.List(ctx, s.shard, *s.filter, s.nextPage, pageSize)
		if err != nil {
			return clientError(err)
		}
		s.bufferedEntries, s.nextPage, s.atEnd = p.Entries, p.Next, p.Next == store.Cursor{}
	}
	return nil
}

// listEntries iterates over the entries of all shards after a Cursor, in order. It ends
// at the first error. It reads about readAhead entries ahead.
func (c *Client) listEntries(ctx context.Context, f store.Filter, after store.Cursor, readAhead int) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		n := c.store.Shards()
		pageSize := min(max(2*readAhead/n, 10), readAhead)
		if f.Prefix != "" || f.Error != "" {
			pageSize = max(pageSize, 200) // a short page may cost as much as a long one
		}
		shardLists := make([]*shardList, n)
		for i := range shardLists { // one by one, so that the store also serves others
			shardLists[i] = &shardList{shard: i, filter: &f, nextPage: after}
			if err := shardLists[i].fillBuffer(ctx, c, pageSize); err != nil {
				yield(store.Entry{}, err)
				return
			}
		}
		shardLists = slices.DeleteFunc(shardLists, func(s *shardList) bool { return len(s.bufferedEntries) == 0 })
		slices.SortFunc(shardLists, (*shardList).compareNextEntry)
		for len(shardLists) > 0 {
			firstList := shardLists[0]
			e := firstList.bufferedEntries[0]
			firstList.bufferedEntries = firstList.bufferedEntries[1:]
			if !yield(e, nil) {
				return
			}
			if err := firstList.fillBuffer(ctx, c, pageSize); err != nil {
				yield(store.Entry{}, err)
				return
			}
			if len(firstList.bufferedEntries) == 0 {
				shardLists = shardLists[1:]
				continue
			}
			i, _ := slices.BinarySearchFunc(shardLists[1:], firstList, (*shardList).compareNextEntry)
			copy(shardLists, shardLists[1:1+i])
			shardLists[i] = firstList
		}
	}
}
