package sqlitestore

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A cachedGroup is the state of a group. The pointer is nil if there is none.
type cachedGroup struct {
	*machine.Group
	dirty bool // changed, but not written
}

// groupName returns a group's name in the table. Handlers with groups contain no NUL.
func groupName(k machine.GroupKey) string { return k.Handler + "\x00" + k.Name }

// cacheGroup returns the state of a group in a row. A damaged row has no running tasks, so that
// a claim deletes it; Check and Verify find it before.
func (ix *index) cacheGroup(rows *sql.Rows) *machine.Group {
	r, g := scanSmallRow(rows), new(machine.Group)
	if r.decode(g) != nil {
		*g = machine.Group{}
	}
	g.Handler, g.Name, _ = strings.Cut(r.name, "\x00")
	if x := ix.groups[g.GroupKey]; x != nil && x.Group != nil {
		return x.Group
	}
	ix.groups[g.GroupKey] = &cachedGroup{Group: g}
	return g
}

func (ix *index) Group(k machine.GroupKey) *machine.Group {
	if ix.groups[k] == nil {
		ix.groups[k] = new(cachedGroup)
		ix.queryRows(findGroup, []any{groupName(k)}, func(rows *sql.Rows) { ix.cacheGroup(rows) })
	}
	return ix.groups[k].Group
}

func (ix *index) PutGroup(k machine.GroupKey, g *machine.Group) {
	ix.groups[k] = &cachedGroup{Group: g, dirty: true}
}

func (ix *index) Groups(until store.Time, n int) (groups []*machine.Group) {
	ix.flushGroups()
	ix.queryRows(firstGroups, []any{int64(until), n}, func(rows *sql.Rows) { groups = append(groups, ix.cacheGroup(rows)) })
	return groups
}

// flushGroups writes the changed states to the table.
func (ix *index) flushGroups() {
	for k, x := range ix.groups {
		switch {
		case !x.dirty:
		case x.Group == nil:
			ix.exec(dropGroup, groupName(k))
		default:
			r := smallRow{name: groupName(k), text: encodeJSON(x.Group), first: int64(x.Until)}
			ix.exec(putGroup, r.name, r.text, r.first, r.checksum())
		}
		x.dirty = false
	}
}

// maxReady limits how many tasks of a kind are read that are not parked. The machine leaves
// no more.
const maxReady = 2 * store.MaxOfGroup

// Members returns the tasks of some groups that are not parked, and the first n parked ones
// of each kind.
func (ix *index) Members(keys []machine.GroupKey, n int) (tasks []*machine.Task) {
	ix.flushTasks()
	names := make([][2]string, len(keys))
	for i, k := range keys {
		names[i] = [2]string{k.Handler, k.Name}
	}
	encoded := encodeJSON(names)
	read := func(states [2]int64, n int) {
		query := fmt.Sprintf(members, "tickless_tasks INDEXED BY tickless_grouped WHERE grp IS NOT NULL", states[0], states[1])
		found, _ := ix.selectTasks(store.Pending, query, encoded, n)
		tasks = append(tasks, found...)
	}
	read([2]int64{int64(store.Pending), pendingSuspect}, maxReady)
	read([2]int64{parked, parkedSuspect}, n)
	return tasks
}
