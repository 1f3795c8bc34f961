package redistimer

import "time"

// maxBytes is the size of the records from which on a script gets no more of
// them: what a server takes up in a millisecond or so.
const maxBytes = 512 << 10

// A batch is what goes to one shard, cut into scripts' arguments.
type batch struct {
	chunks []chunk
	next   int  // of the chunks, the first that has not been answered
	stuck  bool // nothing comes after it for now
	expect int  // about how many items will come
}

type chunk struct {
	args  []any
	items []int // whose outcomes they are
	bytes int
	// until is when it is not to be carried out any more, by this process' clock;
	// zero if there is no such time. The header is set when it is sent first.
	until  time.Time
	header header
	sent   bool // perhaps: a copy had no answer
}

// newBatches makes one for each shard, for n items in all.
func newBatches(shards, n int) []batch {
	batches := make([]batch, shards)
	for i := range batches {
		batches[i].expect = n/shards + n/shards/8
	}
	return batches
}

// add adds what a script is to be told about an item.
func (b *batch) add(item, bytes int, args ...any) *chunk {
	if n := len(b.chunks); n == 0 || len(b.chunks[n-1].items) == maxBatch || b.chunks[n-1].bytes+bytes > maxBytes {
		b.chunks = append(b.chunks, chunk{args: make([]any, 0, len(args)*min(b.expect+1, maxBatch))})
	}
	last := &b.chunks[len(b.chunks)-1]
	last.args = append(last.args, args...)
	last.items = append(last.items, item)
	last.bytes += bytes
	return last
}

func setAll(errs []error, items []int, err error) {
	for _, i := range items {
		errs[i] = err
	}
}

// firstOf returns the first error that there is.
func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
