package machine

import (
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// setName returns the name of the Sender that is the record of a set. No other sender has
// it. Its Number is the set's version, and it is never Gone.
func setName(set string) string { return "\x02" + set }

func (m *machine) sync(items []store.Item) []store.Outcome {
	outcomes := slices.Repeat([]store.Outcome{store.Kept}, len(items))
	version := items[0].Version
	old := m.index.Sender(setName(items[0].ID))
	if old != nil && version < old.Number {
		return outcomes
	}
	keys := make([]string, 0, len(items)-1)
	isNew := make(map[string]bool, len(items)-1)
	for i := range items[1:] {
		x := &items[1+i]
		outcomes[1+i] = m.syncTask(x)
		keys = append(keys, x.ID)
		isNew[x.ID] = true
	}
	outcomes[0] = store.Created
	if old != nil {
		outcomes[0] = store.Replaced
		for _, key := range old.Keys {
			if t := m.index.Find(key); !isNew[key] && t != nil && t.Repeats() {
				m.cancel(t)
			}
		}
	}
	m.index.Remember(setName(items[0].ID), &Sender{Number: version, Seen: store.Farthest, Keys: keys})
	return outcomes
}

func (m *machine) syncTask(x *store.Item) store.Outcome {
	t, at := m.index.Find(x.ID), x.When.From(m.now)
	outcome := m.schedule(t, x, at, store.KeepSame)
	isUnchanged := outcome == store.Kept && t != nil && t.State == store.Pending
	if !x.Anew || !isUnchanged || t.At == at || t.At == store.Farthest || m.runStays(t) {
		return outcome
	}
	t.Due = at
	m.renewVersion(t)
	m.setState(t, store.Pending, at)
	return store.Moved
}
