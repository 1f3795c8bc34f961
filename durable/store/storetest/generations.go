package storetest

import (
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// Requesting a run again gives it a new generation, even if it is due at the same time
// as the run before. Further attempts at a run keep its generation. The rest of the
// record never changes.
func testGenerations(b *bench) {
	n := 0
	again := func(op store.Op, id string, w store.When) store.Outcome {
		n++
		return b.change(store.Command{Op: op, Items: []store.Item{{ID: id, When: w, Generation: strings.Repeat(strconv.Itoa(n), store.GenerationSize)}}})[0]
	}
	record := func(n int) string {
		const first = "record of k"
		if n == 0 {
			return first
		}
		return first[:1] + strings.Repeat(strconv.Itoa(n), store.GenerationSize) + first[1+store.GenerationSize:]
	}
	follows := func() string {
		next := b.get("k").NextTask
		b.require(next != nil, "nothing follows with another generation")
		return string(next.Record)
	}
	claim := func(id string, generation int) store.Claimed {
		b.Helper()
		x := b.claimOne(id)
		equal(b, "record", string(x.Record), record(generation))
		return x
	}
	at := b.now() - 5
	b.schedule("k", store.At(at))
	x := claim("k", 0)

	// All attempts at one run have the same generation.
	b.require(b.report(x, store.Retry, b.after(10)), "refused")
	equal(b, "reschedule", again(store.Reschedule, "k", b.after(0)), store.Moved)
	claim("k", 0)
	b.sleep(lease + 1)
	x = claim("k", 0)

	// A task that is rescheduled while it runs gets a new generation for the next run.
	// The running attempt keeps its own.
	equal(b, "reschedule", again(store.Reschedule, "k", store.At(x.Due)), store.Following)
	equal(b, "what runs", string(b.get("k").Record), record(0))
	equal(b, "what follows", follows(), record(2))
	equal(b, "reschedule", again(store.Reschedule, "k", store.At(x.Due)), store.Following)
	equal(b, "what follows", follows(), record(3))
	b.require(b.report(x, store.Done, store.When{}), "refused")
	y := claim("k", 3)
	equal(b, "due", y.Due, x.Due)
	b.require(b.report(y, store.HandBack, b.after(1)), "refused")

	// A pending task without attempts gets a new generation too: an earlier run may
	// have had this time.
	equal(b, "reschedule", again(store.Reschedule, "k", store.At(at)), store.Moved)
	equal(b, "due", b.get("k").Due, at)
	x = claim("k", 4)
	b.require(b.report(x, store.Failed, store.When{}), "refused")

	// A requeued dead letter gets a new generation too.
	equal(b, "requeue", again(store.Requeue, "k", store.At(at)), store.Moved)
	equal(b, "due", b.get("k").Due, at)
	x = claim("k", 5)

	// A task that was scheduled while another ran, and is then rescheduled, keeps the
	// record with which it was scheduled.
	other := store.Task{ID: "k", Handler: "h", Record: []byte("vGENERAother")}
	out := b.change(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "k", When: store.At(at), Task: other}}})
	equal(b, "schedule", out[0], store.Following)
	equal(b, "reschedule", again(store.Reschedule, "k", store.At(at)), store.Following)
	b.require(b.report(x, store.Done, store.When{}), "refused")
	x = b.claimOne("k")
	equal(b, "record", string(x.Record), "v666666other")

	// The dead letter of a repeating task and the task itself have separate
	// generations.
	b.require(b.report(x, store.Failed, b.after(100)), "refused")
	equal(b, "requeue", again(store.Requeue, store.DeadID("k"), store.At(at)), store.Moved)
	y = b.claimOne(store.SingleID("k", at))
	equal(b, "record", string(y.Record), "v777777other")
	equal(b, "record", string(b.get("k").Record), "v666666other")
	b.require(b.report(y, store.Done, store.When{}), "refused")
	equal(b, "cancel", b.op(store.Cancel, "k", store.When{}), store.Removed)

	// A record that is too short to contain a generation does not change, and neither
	// does any record if the command has no generation.
	short := store.Task{ID: "k", Handler: "h", Record: []byte("short!")}
	b.change(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "k", When: b.after(0), Task: short}}})
	x = b.claimOne("k")
	equal(b, "reschedule", again(store.Reschedule, "k", b.after(0)), store.Following)
	b.require(b.get("k").NextTask == nil, "%+v", b.get("k"))
	b.require(b.report(x, store.Done, store.When{}), "refused")
	x = b.claimOne("k")
	equal(b, "record", string(x.Record), "short!")
	b.require(b.report(x, store.Failed, store.When{}), "refused")
	equal(b, "requeue", b.op(store.Requeue, "k", b.after(0)), store.Moved)
	equal(b, "record", string(b.claimOne("k").Record), "short!")

	for _, c := range []store.Command{
		{Op: store.Reschedule, Items: []store.Item{{ID: "k", When: b.after(0), Generation: "1"}}},
		{Op: store.Cancel, Items: []store.Item{{ID: "k", Generation: "123456"}}},
	} {
		_, err := b.Store.Change(ctx, 0, b.stamp(), c)
		b.isError(err, store.ErrInvalid)
	}
}
