package service

import (
	"context"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

const (
	// recordsInterval is how often Run looks how much the records of finished runs take.
	recordsInterval = time.Minute
	// recordOverhead is an estimate of what a store needs for an entry besides its texts.
	recordOverhead = 250
	samples        = 10
)

// limitRecords purges records of finished runs if all of them take more than limit bytes: first
// those that expire first. It returns how many. The size is an estimate, from entries that expire
// at different times within span.
func limitRecords(ctx context.Context, client *durable.Client, limit int64, span time.Duration) (purged int, err error) {
	st, err := client.Stats(ctx)
	if err != nil {
		return 0, err
	}
	now, err := client.Store().Now(ctx, 0)
	var size, entries, runs int64
	for i := 0; i < samples && err == nil; i++ {
		var p store.Page
		after := store.Cursor{State: store.Past, At: now.Add(span * time.Duration(i) / samples)}
		p, err = client.Store().List(ctx, 0, store.Filter{State: store.Past}, after, 100)
		for j := range p.Entries {
			e := &p.Entries[j]
			size += recordOverhead + int64(2*len(e.ID)+len(e.Handler)+len(e.Record))
			for _, f := range e.Failures {
				size += int64(len(f.Text))
			}
			if len(e.Record) > 0 { // the others count the runs of a key
				runs++
			}
		}
		entries += int64(len(p.Entries))
	}
	if err != nil || runs == 0 {
		return 0, err
	}
	tooMany := (st.Past*size/entries - limit) / (size / runs)
	if tooMany <= 0 {
		return 0, nil
	}
	return client.PurgeAll(ctx, durable.Filter{State: durable.Past}, durable.AtMost(int(tooMany)))
}
