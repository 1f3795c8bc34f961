//go:build ignore

// Command generate made the files in this folder and in redisstore/testdata with the code
// of commit 84d6d4fe: an SQLite file with schema 2, and Redis keys with schema 5. It needs
// a Redis server, and arguments: the server's address and the folder for its output.
package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

var ctx = context.Background()

// A Want is what a store of the older form contains.
type Want struct {
	Entries []store.Entry
	Stats   store.Stats
	Limits  map[string]store.Limit
	// Last is the latest command of a sender: it cancelled tasks, with these outcomes.
	Last      store.Stamp
	Cancelled []string
	Outcomes  []store.Outcome
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

const century = 100 * 365 * 24 * time.Hour

type daily struct{}

func (daily) Next(t time.Time) time.Time { return t.Add(24 * time.Hour) }

type filler struct {
	st     store.Store
	c      *durable.Client
	number int64
}

func (f *filler) schedule(w durable.When, t durable.Task) {
	_, err := f.c.Schedule(ctx, t, w)
	must(err)
}

func (f *filler) do(shard int, r store.Round) store.Answer {
	f.number++
	if r.Lease == 0 {
		r.Lease = 1000 * time.Hour
	}
	if r.MaxCrashes == 0 {
		r.MaxCrashes = 3
	}
	a, err := f.st.Do(ctx, shard, store.Stamp{Sender: "worker-1." + strconv.Itoa(shard), Number: f.number}, r)
	must(err)
	return a
}

// claim claims all due tasks of a handler.
func (f *filler) claim(handler string, lease time.Duration) map[string]claimed {
	out := make(map[string]claimed)
	for shard := range f.st.Shards() {
		for {
			r := store.Round{Lease: lease, Claim: store.Claim{Asked: true, Max: 100, Handlers: []string{handler}, Schedules: []string{"daily", "d\xfe"}}}
			tasks := f.do(shard, r).Tasks
			for _, t := range tasks {
				out[t.ID] = claimed{shard, t}
			}
			if len(tasks) == 0 || lease > 0 { // a short lease may end before the next round
				break
			}
		}
	}
	return out
}

type claimed struct {
	shard int
	store.Claimed
}

func (f *filler) report(x claimed, end store.End, next store.When, text string, result []byte) {
	_, keep := x.Task.Keeps()
	a := f.do(x.shard, store.Round{Reports: []store.Report{{Lease: store.Lease{ID: x.ID, Token: x.Token}, End: end, Next: next, Due: x.Due, Text: text, Keep: keep, Result: result}}})
	if a.Receipts[0] == store.Refused {
		panic("refused: " + x.ID)
	}
}

func (f *filler) fill(odd bool) {
	now, later := durable.After(0), durable.At(time.Date(2100, 1, 2, 3, 4, 5, 678_000, time.UTC))
	body := []byte(strings.Repeat("body ", 400))

	// Pending tasks of all kinds.
	f.schedule(later, durable.Task{Key: "plain", Handler: "h"})
	f.schedule(later, durable.Task{Key: "full", Handler: "h", Body: body, Headers: map[string]string{"trace": "1-2", "ü": "ö\x00"}, MaxAttempts: 7, Timeout: time.Minute})
	f.schedule(later, durable.Task{Key: "unique", Handler: "h", Unique: time.Hour})
	f.schedule(later, durable.Task{Key: "every", Handler: "h", Every: time.Hour, Missed: durable.DeadMissed, MissedAfter: time.Minute})
	f.schedule(later, durable.Task{Key: "bounded", Handler: "h", Every: time.Hour, Start: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2150, 1, 1, 0, 0, 0, 0, time.UTC)})
	f.schedule(later, durable.Task{Key: "cron", Handler: "h", Cron: "0 9 * * 1-5", Zone: "Europe/Berlin"})
	f.schedule(later, durable.Task{Key: "named", Handler: "h", Schedule: "daily"})
	f.schedule(later, durable.Task{Key: "paused", Handler: "h", Cron: "@daily"})
	_, err := f.c.PauseTask(ctx, "paused")
	must(err)
	f.schedule(later, durable.Task{Key: strings.Repeat("k", 512), Handler: strings.Repeat("h", 512)})
	f.schedule(later, durable.Task{Key: "Schlüssel/über:alles 🎉", Handler: "Größe"})
	for i := range 30 {
		f.schedule(now, durable.Task{Key: fmt.Sprint("due", i), Handler: fmt.Sprint("nobody", i%10)})
	}
	if odd {
		for i, s := range []string{"\xff", "\xc3", "\n", "\x7f", "\u0085", "\x1b[31m"} {
			f.schedule(later, durable.Task{Key: "odd" + s, Handler: "odd" + s})
			f.schedule(now, durable.Task{Key: fmt.Sprint("kind", i), Handler: "kind" + s})
		}
		f.schedule(later, durable.Task{Key: "scheduled\xfe", Handler: "h", Schedule: "d\xfe"})
	}

	// Tasks that were tried, and dead letters.
	f.schedule(now, durable.Task{Key: "tried", Handler: "tries", Body: body})
	f.schedule(now, durable.Task{Key: "handed back", Handler: "tries"})
	f.schedule(now, durable.Task{Key: "dead", Handler: "tries", Body: body})
	f.schedule(now, durable.Task{Key: "dies", Handler: "tries", Every: time.Hour})
	f.schedule(now, durable.Task{Key: "requeued", Handler: "tries", Schedule: "daily"})
	f.schedule(now, durable.Task{Key: "again", Handler: "tries", Schedule: "daily"})
	f.schedule(now, durable.Task{Key: "many failures", Handler: "tries"})
	x := f.claim("tries", 0)
	far := store.At(4_102_444_800_000_000)
	f.report(x["tried"], store.Retry, far, "no route to host", nil)
	f.report(x["handed back"], store.HandBack, far, "", nil)
	f.report(x["dead"], store.Failed, store.When{}, "400 Bad Request", nil)
	f.report(x["dies"], store.Failed, far, "first", nil)
	f.report(x["requeued"], store.Failed, far, "will be requeued", nil)
	f.report(x["again"], store.Failed, far, "will be running", nil)
	_, err = f.c.Requeue(ctx, store.DeadID("requeued"), later)
	must(err)
	for i := range 12 {
		text := fmt.Sprint("failure ", i)
		if odd {
			text += " \xff\x00\u0085"
		}
		f.report(x["many failures"], store.Retry, store.After(0), text, nil)
		x = f.claim("tries", 0)
	}
	f.report(x["many failures"], store.Failed, store.When{}, "last", nil)
	_, err = f.c.Reschedule(ctx, "dies", now)
	must(err)
	f.report(f.claim("tries", 0)["dies"], store.Failed, far, "second", nil)

	// Crashed attempts.
	f.schedule(now, durable.Task{Key: "crashed once", Handler: "crashes"})
	f.schedule(now, durable.Task{Key: "crashed twice", Handler: "crashes"})
	f.schedule(now, durable.Task{Key: "crashed to death", Handler: "crashes"})
	f.schedule(now, durable.Task{Key: "crashed and running", Handler: "crashes"})
	for range 2 {
		f.claim("crashes", time.Millisecond)
		time.Sleep(5 * time.Millisecond)
	}
	x = f.claim("crashes", time.Millisecond)
	f.report(x["crashed twice"], store.HandBack, far, "", nil)
	f.report(x["crashed once"], store.Done, store.When{}, "", nil)
	f.schedule(now, durable.Task{Key: "crashed once", Handler: "crashes once"})
	f.claim("crashes once", time.Millisecond)
	time.Sleep(5 * time.Millisecond)
	// The last of several crashes counts only if the task ran alone.
	f.claim("crashes", time.Millisecond)
	time.Sleep(5 * time.Millisecond)
	x = f.claim("crashes", 50*time.Millisecond)
	death := x["crashed to death"]
	f.report(x["crashed and running"], store.HandBack, store.After(0), "", nil)
	f.do(death.shard, store.Round{Lease: time.Millisecond, Alone: true, Extend: []store.Lease{{ID: death.ID, Token: death.Token}}})
	time.Sleep(5 * time.Millisecond)
	for shard := range f.st.Shards() {
		f.do(shard, store.Round{Claim: store.Claim{Asked: true, Handlers: []string{"x"}}})
	}
	x = f.claim("crashes", 0)
	if len(x) != 1 || x["crashed and running"].Crashes == 0 {
		panic(fmt.Sprint(x))
	}

	// Running tasks.
	f.schedule(now, durable.Task{Key: "running", Handler: "runs", Body: body})
	f.schedule(now, durable.Task{Key: "stopping", Handler: "runs"})
	f.schedule(now, durable.Task{Key: "following", Handler: "runs"})
	f.schedule(now, durable.Task{Key: "moving", Handler: "runs"})
	f.schedule(now, durable.Task{Key: "stopping and following", Handler: "runs"})
	f.schedule(now, durable.Task{Key: "runs daily", Handler: "runs", Schedule: "daily"})
	f.schedule(now, durable.Task{Key: "alone", Handler: "runs alone"})
	_, err = f.c.Requeue(ctx, store.DeadID("again"), now)
	must(err)
	f.claim("tries", 0)
	f.claim("runs", 0)
	x = f.claim("runs alone", 0)
	f.do(x["alone"].shard, store.Round{Alone: true, Extend: []store.Lease{{ID: "alone", Token: x["alone"].Token}}})
	for _, key := range []string{"stopping", "stopping and following"} {
		_, err = f.c.Cancel(ctx, key)
		must(err)
	}
	for _, key := range []string{"following", "stopping and following"} {
		f.schedule(later, durable.Task{Key: key, Handler: "follows", Body: body, Retention: durable.Retention{Runs: 3}})
	}
	_, err = f.c.Reschedule(ctx, "moving", later)
	must(err)

	// Finished runs that are kept, and keys that are unique.
	kept := durable.Task{Key: "kept", Handler: "keeps", Every: time.Hour, Retention: durable.Retention{For: century, Runs: 5}}
	f.schedule(now, kept)
	f.schedule(now, durable.Task{Key: "all kept", Handler: "keeps", Retention: durable.Retention{For: century}})
	f.schedule(now, durable.Task{Key: "was unique", Handler: "keeps", Unique: century})
	x = f.claim("keeps", 0)
	f.report(x["kept"], store.Done, store.After(0), "", []byte("\x00result 1"))
	f.report(x["all kept"], store.Failed, store.When{}, "failed", nil)
	f.report(x["was unique"], store.Done, store.When{}, "", nil)
	for i := range 7 {
		x = f.claim("keeps", 0)
		if i == 6 {
			f.report(x["kept"], store.Done, far, "", []byte("\x00last result"))
		} else if i%2 == 0 {
			f.report(x["kept"], store.Done, store.After(0), "", []byte(fmt.Sprint("\x00result ", i)))
		} else {
			f.report(x["kept"], store.Failed, store.After(0), fmt.Sprint("error ", i), nil)
		}
	}

	// Limits, with running and waiting tasks.
	must(f.c.SetLimit(ctx, "limited", durable.Limit{Concurrency: 2, Rate: 1000}))
	must(f.c.SetLimit(ctx, "Größe", durable.Limit{Rate: 0.125}))
	if odd {
		must(f.c.SetLimit(ctx, "odd\xff", durable.Limit{Concurrency: 3}))
	}
	for i := range 20 {
		f.schedule(now, durable.Task{Key: fmt.Sprint("limited", i), Handler: "limited"})
	}
	f.claim("limited", 0)
}

func (f *filler) want() Want {
	w := Want{Limits: make(map[string]store.Limit)}
	for shard := range f.st.Shards() {
		for c := (store.Cursor{}); ; {
			p, err := f.st.List(ctx, shard, store.Filter{}, c, 1000)
			must(err)
			w.Entries = append(w.Entries, p.Entries...)
			if c = p.Next; c == (store.Cursor{}) {
				break
			}
		}
	}
	st, err := f.st.Stats(ctx, 0)
	must(err)
	w.Stats = st
	w.Limits, err = f.c.Limits(ctx)
	must(err)
	return w
}

// finish pauses the store, writes an export and what the store contains.
func (f *filler) finish(gobPath, exportPath string) {
	must(f.c.Pause(ctx))
	last, command := store.Stamp{Sender: "client-1", Number: 17}, store.Command{Op: store.Cancel, Items: []store.Item{{ID: "absent"}, {ID: "due0"}}}
	outcomes, err := f.st.Change(ctx, 0, last, command)
	must(err)
	w := f.want()
	w.Last, w.Cancelled, w.Outcomes = last, []string{"absent", "due0"}, outcomes
	out, err := os.Create(gobPath)
	must(err)
	must(gob.NewEncoder(out).Encode(w))
	must(out.Close())
	out, err = os.Create(exportPath)
	must(err)
	_, err = durable.Export(ctx, out, f.st)
	must(err)
	must(out.Close())
	fmt.Println(gobPath, len(w.Entries), "entries", fmt.Sprintf("%+v", w.Stats), outcomes)
}

func main() {
	addr, dir := os.Args[1], os.Args[2]
	file := filepath.Join(dir, "schema2.db")
	sq, err := sqlitestore.Open(file)
	must(err)
	f := &filler{st: sq, c: durable.New(sq, durable.WithSchedule("daily", daily{}), durable.WithSchedule("d\xfe", daily{}))}
	f.fill(true)
	f.finish(filepath.Join(dir, "schema2.gob"), filepath.Join(dir, "schema2.export"))
	must(sq.Close())

	rdb := redis.NewClient(&redis.Options{Addr: addr})
	must(rdb.FlushAll(ctx).Err())
	rs := redisstore.New(rdb)
	f = &filler{st: rs, c: durable.New(rs, durable.WithSchedule("daily", daily{}), durable.WithSchedule("d\xfe", daily{}))}
	f.fill(true)
	f.finish(filepath.Join(dir, "schema5.gob"), filepath.Join(dir, "schema5.export"))
	out, err := os.Create(filepath.Join(dir, "schema5.txt"))
	must(err)
	w := bufio.NewWriter(out)
	line := func(words ...string) {
		for i := range words {
			words[i] = strconv.Quote(words[i])
		}
		fmt.Fprintln(w, strings.Join(words, " "))
	}
	keys := rdb.Keys(ctx, "*").Val()
	slices.Sort(keys)
	for _, key := range keys {
		switch rdb.Type(ctx, key).Val() {
		case "hash":
			fields := rdb.HGetAll(ctx, key).Val()
			var names []string
			for k := range fields {
				names = append(names, k)
			}
			slices.Sort(names)
			for _, k := range names {
				line("HSET", key, k, fields[k])
			}
		case "zset":
			for _, z := range rdb.ZRangeWithScores(ctx, key, 0, -1).Val() {
				line("ZADD", key, strconv.FormatFloat(z.Score, 'f', 0, 64), z.Member.(string))
			}
		default:
			panic(key)
		}
	}
	must(w.Flush())
	must(out.Close())
}
