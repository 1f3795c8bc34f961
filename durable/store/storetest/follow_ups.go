package storetest

import (
	"github.com/tickless/tickless/durable/store"
)

// followedRecord returns a record with follow-ups of the handlers "h" and "unknown".
func followedRecord(repeats bool) []byte {
	inner := func(body byte) []byte {
		return new(store.FollowUps).Append([]byte{2, 0, 0, 0, 0, 0, 0, 0, body})
	}
	fields := byte(0)
	if repeats {
		fields = 8
	}
	f := store.FollowUps{Success: &store.Task{Handler: "h", Record: inner('s')}, Failure: &store.Task{Handler: "ünknown", Record: inner('f')}}
	return f.Append([]byte{2, 1, 2, 3, 4, 5, 6, fields, 100, 'b'})
}

// A follow-up knows the run that it follows, and has the content that its task gave it.
func testFollowUps(b *storeTest) {
	b.play(followUpHistories, false)
	t := store.Task{ID: "ended", Handler: "h", Group: "grüp", Record: followedRecord(false)}
	b.scheduleItems([]store.Item{{ID: t.ID, When: store.After(0), Task: t}})
	b.require(b.report(b.claimOne(t.ID), store.Retry, store.After(0)), "the report was refused")
	x := b.claimOne(t.ID)
	b.reportKept(x, store.Failed, store.When{})
	e := b.getEntry(store.FollowUpID(x.ID, x.Token))
	equal(b, "the follow-up", []any{e.State, e.Handler, e.Group, e.Due, e.Attempts}, []any{store.Pending, "ünknown", "grüp", e.At, 0})
	got, ok := e.FollowedRun()
	b.require(ok, "the record of the follow-up is %q", e.Record)
	equal(b, "the ended run", got, store.RunEnd{Due: x.Due, Attempts: 2, Text: "text"})
	_, size, _ := e.FollowUps()
	equal(b, "the follow-up's content", e.Record[7:size], []byte{0, 'f'})
	b.require(string(e.Record[1:7]) != "\x00\x00\x00\x00\x00\x00", "the follow-up has no generation")
}
