package pgstore

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A cachedGroup is the state of a group. The pointer is nil if there is none.
type cachedGroup struct {
	*machine.Group
	dirty bool // changed, but not written
}

// groupRows are the stored states with the first times.
type groupRows struct {
	keys  []machine.GroupKey
	limit int // how many were read at most
}

const (
	findGroups = `SELECT g.* FROM unnest($2::text[], $3::text[]) k(handler, name) CROSS JOIN LATERAL (SELECT g.handler, g.name, g.value
		FROM tickless.groups g WHERE g.shard = $1 AND g.handler = k.handler AND g.name = k.name LIMIT 1) g`
	untilGroups = `SELECT handler, name, value FROM tickless.groups WHERE shard = $1 ORDER BY until LIMIT $2`
	dropGroups  = `DELETE FROM tickless.groups WHERE ctid = ANY (ARRAY(SELECT (SELECT g.ctid FROM tickless.groups g WHERE g.shard = $1 AND g.handler = k.handler AND g.name = k.name)
		FROM unnest($2::text[], $3::text[]) k(handler, name)))`
	putGroups = `INSERT INTO tickless.groups (shard, handler, name, until, value) SELECT $1, * FROM unnest($2::text[], $3::text[], $4::int8[], $5::text[])
		ON CONFLICT (shard, handler, name) DO UPDATE SET until = excluded.until, value = excluded.value`

	ofGroup = `FROM tickless.tasks t WHERE t.shard = $1 AND t.grp <> '' AND t.handler = k.handler AND t.grp = k.grp AND t.state = k.state AND t.suspect = k.suspect`
	// members selects the first tasks of each schedule in some groups: $4 that are parked and
	// $5 others.
	members = `WITH RECURSIVE k AS (
		SELECT k.*, (SELECT min(t.schedule) ` + ofGroup + `) AS schedule
			FROM (SELECT g.handler, g.grp, s.state, s.suspect FROM unnest($2::text[], $3::text[]) g(handler, grp)
				CROSS JOIN (VALUES (1::int2, false), (1::int2, true), (9::int2, false), (9::int2, true)) s(state, suspect)) k
		UNION ALL SELECT k.handler, k.grp, k.state, k.suspect, (SELECT min(t.schedule) ` + ofGroup + ` AND t.schedule > k.schedule) FROM k WHERE k.schedule IS NOT NULL)
		SELECT t.* FROM k CROSS JOIN LATERAL (SELECT ` + taskColumns + ` ` + ofGroup + ` AND t.schedule = k.schedule
			ORDER BY t.at LIMIT CASE WHEN k.state = 9 THEN $4::int8 ELSE $5::int8 END) t WHERE k.schedule IS NOT NULL`
)

func namesOf(keys []machine.GroupKey) (handlers, names []string) {
	for _, k := range keys {
		handlers, names = append(handlers, k.Handler), append(names, k.Name)
	}
	return handlers, names
}

func (ix *index) scanGroup(rows pgx.Rows) machine.GroupKey {
	var k machine.GroupKey
	var value []byte
	must(rows.Scan(&k.Handler, &k.Name, &value))
	if x := ix.groups[k]; x == nil || x.Group == nil && !x.dirty {
		x = &cachedGroup{Group: new(machine.Group)}
		must(json.Unmarshal(value, x.Group))
		ix.groups[k] = x
	}
	return k
}

// Group reads the states of all groups of cached tasks at once.
func (ix *index) Group(k machine.GroupKey) *machine.Group {
	if ix.groups[k] == nil {
		missing := []machine.GroupKey{k}
		ix.groups[k] = new(cachedGroup)
		for _, x := range ix.tasks {
			if k := (machine.GroupKey{Handler: x.Handler, Name: x.Group}); k.Name != "" && ix.groups[k] == nil {
				missing = append(missing, k)
				ix.groups[k] = new(cachedGroup)
			}
		}
		handlers, names := namesOf(missing)
		ix.queryNow(func(rows pgx.Rows) { ix.scanGroup(rows) }, findGroups, ix.shard, handlers, names)
	}
	return ix.groups[k].Group
}

func (ix *index) PutGroup(k machine.GroupKey, g *machine.Group) {
	ix.groups[k] = &cachedGroup{Group: g, dirty: true}
}

// firstGroupsRead is how many states a claim reads.
const firstGroupsRead = 101

// loadFirstGroups adds a query for the states with the first times.
func (ix *index) loadFirstGroups(b *pgx.Batch, limit int) {
	x := &groupRows{limit: limit}
	ix.firstGroups = x
	ix.query(b, func(rows pgx.Rows) { x.keys = append(x.keys, ix.scanGroup(rows)) }, untilGroups, ix.shard, limit)
}

func (ix *index) Groups(until store.Time, n int) (groups []*machine.Group) {
	for {
		groups = nil
		add := func(x *cachedGroup) {
			if x.Group != nil && x.Until <= until {
				groups = append(groups, x.Group)
			}
		}
		for _, x := range ix.groups {
			if x.dirty {
				add(x)
			}
		}
		unchanged := 0
		if ix.firstGroups != nil {
			for _, k := range ix.firstGroups.keys {
				if x := ix.groups[k]; !x.dirty {
					unchanged++
					add(x)
				}
			}
			if unchanged >= n || len(ix.firstGroups.keys) < ix.firstGroups.limit {
				break
			}
		}
		var b pgx.Batch
		ix.loadFirstGroups(&b, max(firstGroupsRead, n+len(ix.groups)))
		ix.send(&b)
	}
	slices.SortStableFunc(groups, func(a, b *machine.Group) int { return cmp.Compare(a.Until, b.Until) })
	return groups[:min(n, len(groups))]
}

// Members returns the tasks of some groups that are not parked, and the first n parked ones
// of each kind, or more.
func (ix *index) Members(keys []machine.GroupKey, n int) []*machine.Task {
	isWanted := make(map[machine.GroupKey]bool, len(keys))
	for _, k := range keys {
		isWanted[k] = true
	}
	isMember := func(t *machine.Task) bool {
		return t.State == store.Pending && !t.Waits() && t.Group != "" && isWanted[machine.GroupKey{Handler: t.Handler, Name: t.Group}]
	}
	// Changed tasks may be among the first in the table.
	changed := 0
	for _, x := range ix.dirtyTasks {
		if x.hasRow && x.storedTask.Group != "" {
			changed++
		}
	}
	var stored []*cachedTask
	handlers, names := namesOf(keys)
	ix.queryNow(func(rows pgx.Rows) { stored = append(stored, ix.cache(scanTask(rows))) }, members, ix.shard, handlers, names, n+changed, 2*store.MaxOfGroup+changed)
	return ix.current(stored, isMember)
}

// writeGroups writes the changed states.
func (ix *index) writeGroups(exec func(statement string, args ...any)) {
	var gone, put []machine.GroupKey
	var untils []int64
	var values []string
	for k, x := range ix.groups {
		switch {
		case !x.dirty:
		case x.Group == nil:
			gone = append(gone, k)
		default:
			put, untils, values = append(put, k), append(untils, int64(x.Until)), append(values, encodeJSON(x.Group))
		}
	}
	if gone != nil {
		handlers, names := namesOf(gone)
		exec(dropGroups, handlers, names)
	}
	if put != nil {
		handlers, names := namesOf(put)
		exec(putGroups, handlers, names, untils, values)
	}
}
