package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

// RunHostile tests that a Client and a Worker go on with a store in which somebody has
// written anything: no call panics or hangs, and ordinary tasks run. The handler of the
// hostile tasks is "h".
func RunHostile(t *testing.T, st store.Store) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := durable.New(st, durable.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	b := &storeTest{T: t, Subject: Subject{Store: st}}

	const n = 50
	var ran atomic.Int64
	all := make(chan struct{})
	w := durable.NewWorker(c, durable.WithLease(time.Minute))
	w.Handle("h", func(context.Context, durable.Delivery) error { return errors.New("no") })
	w.Handle("ordinary", func(context.Context, durable.Delivery) error {
		if ran.Add(1) == n {
			close(all)
		}
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for i := range n {
		_, err := c.Schedule(ctx, durable.Task{Key: fmt.Sprint("ordinary", i), Handler: "ordinary"}, durable.After(time.Duration(i)*time.Millisecond))
		b.requireNoError(err)
	}
	select {
	case <-all:
	case err := <-done:
		t.Fatalf("the worker has ended: %v", err)
	}

	// None of these calls may panic. Errors are right.
	ids := make(map[string]bool)
	for info, err := range c.List(ctx, durable.Filter{}) {
		b.require(info.ID != "" || err == nil, "the list ends: %v", err)
		ids[info.ID] = true
	}
	b.require(len(ids) > 5, "only %d tasks are listed", len(ids))
	for _, f := range []durable.Filter{{State: durable.Pending}, {State: durable.Dead}, {State: durable.Past}, {Handler: "h"}, {Error: "a"}, {Prefix: "k"}, {DueTo: time.Now()}} {
		for after, pages := durable.Cursor(""), 0; pages < 100; pages++ {
			p, err := c.Page(ctx, f, after, 3)
			if after = p.Next; err != nil || after == "" {
				break
			}
		}
	}
	_, _ = c.RunsPage(ctx, durable.Filter{}, "", 100)
	_, err := c.Stats(ctx)
	b.requireNoError(err)
	_, err = c.Check(ctx)
	b.requireNoError(err)
	_, _ = c.Limits(ctx)
	_, _ = durable.Export(ctx, io.Discard, st)
	for id := range ids {
		_, _ = c.Get(ctx, id)
		_, _ = c.Runs(ctx, store.KeyOf(id))
		_, _ = c.Reschedule(ctx, id, durable.After(time.Hour))
		_, _ = c.PauseTask(ctx, store.KeyOf(id))
		_, _ = c.ResumeTask(ctx, store.KeyOf(id))
		_, _ = c.Requeue(ctx, id, durable.After(time.Hour))
		_, _ = c.Cancel(ctx, id)
		_, _ = c.Purge(ctx, id)
	}
	_, _ = c.RequeueAll(ctx, durable.Filter{State: durable.Dead}, durable.After(time.Hour))
	_, _ = c.CancelAll(ctx, durable.Filter{Handler: "h"})
	_, _ = c.PurgeAll(ctx, durable.Filter{State: durable.Dead})
	_, err = c.Repair(ctx)
	b.requireNoError(err)
	_, err = c.Schedule(ctx, durable.Task{Key: "after", Handler: "nobody"}, durable.After(0))
	b.requireNoError(err)
	_, err = c.Get(ctx, "after")
	b.requireNoError(err)
	_ = w.Close()
	<-done
}

// HostileRecords are records of tasks that nobody has encoded, some of them nearly right.
func HostileRecords() [][]byte {
	head := "\x01genera"
	records := [][]byte{nil, {0}, {1}, {255}, []byte("\x01"), []byte(head), []byte(head + "\x00"), []byte(head + "\xff"), []byte("\x09later version"), make([]byte, 5000)}
	for bits := 0; bits < 256; bits += 5 {
		records = append(records, []byte(head+string([]byte{byte(bits)})+"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01*\x01\x02\x03"))
	}
	for _, tail := range []string{"", "000000000000000000", "999999999999999999", "000004000000000000", "0000000000\xff1000000"} {
		records = append(records, []byte("\x02genera\x00body"+tail), []byte("\x02genera\x800004h"+tail))
	}
	cron := func(spec, zone string) []byte {
		return []byte(head + "\x28\x00" + string([]byte{byte(len(spec))}) + spec + string([]byte{byte(len(zone))}) + zone + "body")
	}
	return append(records, cron("99 99 99 99 99", "UTC"), cron("TZ=0", ""), cron("@every 1ns", ""), cron("0 0 30 2 *", "UTC"), cron("* * * * *", "../../../etc/passwd"),
		cron("* * * * *", "Local"), cron("* * * * *", "\xff\x00"), cron("", "UTC"),
		[]byte(head+"\x80"+"99999999999999999999999999999999999999"), []byte(head+"\x80"+"00000000000000000000000000000000000000"))
}
