package diskstore

import (
	"context"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// Stats returns the shard's numbers. It is O(kinds), and O(n) in the tasks that are due
// beyond the window, which are counted on the disk.
func (s *Store) Stats(ctx context.Context, shard int) (store.Stats, error) {
	sh := s.shards[shard]
	st := new(store.Stats)
	var beyond []overdue
	var now store.Time
	err := sh.call(ctx, &call{look: func() {
		now = sh.now
		*st = store.Stats{Pending: sh.pending, Running: int64(sh.running), Dead: sh.dead, Paused: sh.paused, Counters: sh.Counters}
		for _, k := range sh.kinds {
			first := sh.head(k, now)
			if first == nil {
				continue
			}
			st.Late = max(st.Late, now.Sub(first.At))
			x := overdue{kind: k.id, from: k.mark, known: sh.known(k)}
			n := int64(k.due.len())
			if k.mark.at <= now {
				// What is in memory and beyond the mark is counted with the rest.
				for _, t := range k.due.tasks {
					if t.mark().compare(k.mark) >= 0 {
						n--
					}
				}
				beyond = append(beyond, x)
			}
			x.add(st, n)
		}
	}})
	if err != nil {
		return store.Stats{}, err // the shard's goroutine may still be at it
	}
	if len(beyond) == 0 {
		return *st, nil
	}
	counted := new(store.Stats)
	*counted = *st
	err = s.read(ctx, shard, func(v *view) error {
		for _, x := range beyond {
			n, err := v.count(x.kind, x.from, []store.Time{now + 1})
			if err != nil {
				return err
			}
			x.add(counted, n[0])
		}
		return nil
	})
	if err != nil {
		return store.Stats{}, err
	}
	return *counted, nil
}

// An overdue is a kind of which more is due than the window has.
type overdue struct {
	kind  uint32
	from  mark
	known bool
}

func (x *overdue) add(st *store.Stats, n int64) {
	st.Overdue += n
	if !x.known {
		st.Unknown += n
	}
}

// known reports whether there is a worker that can run tasks of a kind.
func (sh *shard) known(k *kind) bool {
	for _, c := range sh.workers {
		if knows(&c, k) {
			return true
		}
	}
	return false
}

// Forecast counts on the disk. It is O(n) in the tasks that are due before the last of
// the moments.
func (s *Store) Forecast(ctx context.Context, shard int, moments []store.Time) ([]int64, error) {
	if err := store.CheckForecast(moments); err != nil {
		return nil, err
	}
	moments = slices.Clone(moments)
	sum := new([]int64)
	err := s.read(ctx, shard, func(v *view) error {
		out := make([]int64, len(moments))
		err := v.kinds(func(id uint32, _ string) error {
			n, err := v.count(id, mark{}, moments)
			for i := range n {
				out[i] += n[i]
			}
			return err
		})
		*sum = out
		return err
	})
	if err != nil {
		return nil, err
	}
	return *sum, nil
}

// count returns for each of the moments, which ascend, how many Pending tasks of a kind
// are due before it, of those from a mark on.
func (v *view) count(kind uint32, from mark, moments []store.Time) ([]int64, error) {
	out := make([]int64, len(moments))
	if len(moments) == 0 || moments[len(moments)-1] <= from.at && from.id == "" {
		return out, nil
	}
	lower := appendPending(nil, v.sh.index, kind, from.at, from.id)
	i, n := 0, int64(0)
	err := v.each(lower[:kindedLen:kindedLen], lower, func(key, _ []byte) error {
		at, _, err := parseTimed(key, kindedLen)
		for ; i < len(moments) && moments[i] <= at; i++ {
			out[i] = n
		}
		n++
		if err == nil && i == len(moments) {
			err = errEnough
		}
		return err
	})
	for ; i < len(moments); i++ {
		out[i] = n
	}
	if err == errEnough {
		err = nil
	}
	return out, err
}
