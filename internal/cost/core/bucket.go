package main

import (
	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/internal/cost"
	"github.com/tickless/tickless/timingwheel"
)

// filled returns an arena with a bucket of n entries, and an empty one.
func filled(n int) (a *bucket.Arena[int], full, empty bucket.Bucket, refs []bucket.Ref) {
	a = new(bucket.Arena[int])
	full = a.NewBuckets(2)
	for i := range n {
		e := a.New(int64(i), i)
		a.PushBack(full, e)
		refs = append(refs, a.Ref(e))
	}
	return a, full, full + 1, refs
}

var bucketOps = []cost.Op{
	{Name: "bucket: New and PushBack", Growth: cost.Constant, Prepare: func(n int) func(int) {
		a, b, _, _ := filled(n)
		return func(i int) { a.PushBack(b, a.New(0, i)) }
	}},
	{Name: "bucket: Find, Value, SetDeadline, Unlink, Free", Growth: cost.Constant, Prepare: func(n int) func(int) {
		a, _, _, refs := filled(n)
		return func(i int) {
			e, _ := a.Find(some(refs, i))
			a.SetDeadline(e, a.Deadline(e)+int64(a.Value(e)))
			a.Unlink(e)
			a.Free(e)
		}
	}},
	{Name: "bucket: Remove", Growth: cost.Constant, Prepare: func(n int) func(int) {
		a, _, _, refs := filled(n)
		return func(i int) { a.Remove(some(refs, i)) }
	}},
	{Name: "bucket: MoveAll", Growth: cost.Constant, Times: 1, Prepare: func(n int) func(int) {
		a, full, empty, _ := filled(n)
		return func(int) { a.MoveAll(empty, full) }
	}},
	{Name: "bucket: Remove of all, so that chunks are given back", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		a, _, _, refs := filled(n)
		return func(int) {
			for _, r := range refs {
				a.Remove(r)
			}
		}
	}},
	{Name: "bucket: NewBuckets, within a chunk", Growth: cost.Constant, Times: 1, From: 1, To: bucket.ChunkSize / 2, Prepare: func(n int) func(int) {
		a, _, _, _ := filled(n)
		return func(int) { a.NewBuckets(1) }
	}},
	{Name: "bucket: Release, within a chunk", Growth: cost.Constant, Times: 1, From: 1, To: bucket.ChunkSize / 2, Prepare: func(n int) func(int) {
		a, _, _, _ := filled(n)
		return func(int) { a.Release() }
	}},
	{Name: "bucket: NewBuckets and Release, of n chunks", Growth: cost.LinearAtMost, Times: 1, From: 4, To: 256, Prepare: func(n int) func(int) {
		a, _, _, _ := filled(n * bucket.ChunkSize)
		return func(int) {
			a.NewBuckets(1)
			a.Release()
		}
	}},
}

// wheel returns one with n entries.
func wheel(n int) (*timingwheel.Wheel[int], []timingwheel.ID) {
	w := must(timingwheel.New[int](1, 256, 0))
	ids := make([]timingwheel.ID, n)
	for i := range ids {
		ids[i], _ = w.Add(wheelDeadline(i, n), i)
	}
	return w, ids
}

// wheelDeadline is the i-th of n deadlines that are on the third level.
func wheelDeadline(i, n int) int64 { return 1<<20 + int64(i)*(1<<20/int64(n)) }

var wheelOps = []cost.Op{
	{Name: "timingwheel: Add", Growth: cost.Constant, Prepare: func(n int) func(int) {
		w, _ := wheel(n)
		return func(i int) { w.Add(wheelDeadline(i, 256), i) }
	}},
	{Name: "timingwheel: AddWithin", Growth: cost.Constant, Prepare: func(n int) func(int) {
		w, _ := wheel(n)
		return func(i int) { w.AddWithin(wheelDeadline(i, 256), 1000, i) }
	}},
	{Name: "timingwheel: Remove", Growth: cost.Constant, Prepare: func(n int) func(int) {
		w, ids := wheel(n)
		return func(i int) { w.Remove(some(ids, i)) }
	}},
	{Name: "timingwheel: Move", Growth: cost.Constant, Prepare: func(n int) func(int) {
		w, ids := wheel(n)
		return func(i int) { w.Move(some(ids, i), int64(i)) }
	}},
	{Name: "timingwheel: Advance, which hands out n", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		w, _ := wheel(n)
		out := make([]timingwheel.Expired[int], n)
		return func(int) {
			for more := true; more; {
				_, more = w.Advance(1<<21, out)
			}
		}
	}},
	{Name: "timingwheel: Advance to the time n", Growth: cost.Constant, Times: 1, From: 1 << 8, To: 1 << 30, Prepare: func(n int) func(int) {
		w := must(timingwheel.New[int](1, 256, 0))
		w.Add(1, 0)
		out := make([]timingwheel.Expired[int], 10)
		return func(int) { w.Advance(int64(n), out) }
	}},
}
