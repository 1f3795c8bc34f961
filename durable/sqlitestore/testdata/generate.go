//go:build ignore

// Command generate makes test data of this version: an SQLite file, Redis keys and PostgreSQL
// tables, each with a gob of what they contain. Run it once for each version of a store's form,
// before the form changes, in the folder cmd/tickless, because that module requires all stores:
//
//	go run ../../durable/sqlitestore/testdata/generate.go REDIS-ADDRESS POSTGRES-URL FOLDER
//
// The server's data is removed first. It made sqlitestore/testdata/schema3.*, redisstore/testdata/schema6.*
// and pgstore/testdata/schema1.*, the latter with pg_dump. At commit 84d6d4fe it made the
// files of SQLite's schema 2 and Redis' schema 5.
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

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/pgstore"
	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

var ctx = context.Background()

// A Want is what a store of the older form contains.
type Want struct {
	Entries []store.Entry
	Stats   store.Stats
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
		r.Lease = century
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
			r := store.Round{Lease: lease, Claim: store.Claim{Asked: true, Max: 100, Handlers: []string{handler}, Schedules: []string{"daily"}, Suspects: 1, OnlySuspect: true}}
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
	keep := x.Task.ActsAtEnd()
	a := f.do(x.shard, store.Round{Reports: []store.Report{{Lease: store.Lease{ID: x.ID, Token: x.Token}, End: end, Next: next, Due: x.Due, Text: text, Keep: keep, Result: result}}})
	if a.Receipts[0] == store.Refused {
		panic("refused: " + x.ID)
	}
}

func (f *filler) fill() {
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
	f.schedule(later, durable.Task{Key: "of a tenant", Handler: "h", Group: "tenant"})
	f.schedule(later, durable.Task{Key: "followed", Handler: "h", OnSuccess: &durable.Task{Handler: "next"}, OnFailure: &durable.Task{Handler: "alarm", Body: body}})
	f.schedule(now, durable.Task{Key: "of a paused handler", Handler: "nobody paused"})
	must(f.c.PauseHandler(ctx, "nobody paused", "relay is down"))
	_, err = f.c.Sync(ctx, "app", 7, []durable.Item{{Task: durable.Task{Key: "of a set", Handler: "h", Every: time.Hour}, When: later}})
	must(err)

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
		f.report(x["many failures"], store.Retry, store.After(0), text, nil)
		x = f.claim("tries", 0)
	}
	f.report(x["many failures"], store.Failed, store.When{}, "last", nil)
	_, err = f.c.Reschedule(ctx, "dies", now)
	must(err)
	f.report(f.claim("tries", 0)["dies"], store.Failed, far, "second", nil)

	// Crashed attempts.
	f.schedule(now, durable.Task{Key: "crashed once", Handler: "crashes once"})
	f.schedule(now, durable.Task{Key: "suspect", Handler: "crashes twice"})
	f.schedule(now, durable.Task{Key: "crashed to death", Handler: "crashes"})
	for i, handlers := range [][]string{{"crashes once", "crashes twice", "crashes"}, {"crashes twice", "crashes"}, {"crashes"}} {
		for _, handler := range handlers {
			if len(f.claim(handler, time.Millisecond)) != 1 {
				panic(fmt.Sprint("crash ", i, " of ", handler))
			}
		}
		time.Sleep(20 * time.Millisecond)
		for shard := range f.st.Shards() { // ends the leases
			f.do(shard, store.Round{Claim: store.Claim{Asked: true, Handlers: []string{"x"}}})
		}
	}

	// Running tasks.
	f.schedule(now, durable.Task{Key: "running", Handler: "runs", Body: body})
	f.schedule(now, durable.Task{Key: "stopping", Handler: "runs"})
	f.schedule(now, durable.Task{Key: "following", Handler: "runs"})
	f.schedule(now, durable.Task{Key: "moving", Handler: "runs"})
	f.schedule(now, durable.Task{Key: "stopping and following", Handler: "runs"})
	f.schedule(now, durable.Task{Key: "runs daily", Handler: "runs", Schedule: "daily"})
	_, err = f.c.Requeue(ctx, store.DeadID("again"), now)
	must(err)
	f.claim("tries", 0)
	f.claim("runs", 0)
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
	must(f.c.SetLimit(ctx, "by tenant", durable.Limit{GroupConcurrency: 1, GroupRate: 2}))
	for i := range 20 {
		f.schedule(now, durable.Task{Key: fmt.Sprint("limited", i), Handler: "limited"})
	}
	f.claim("limited", 0)
}

func (f *filler) want() Want {
	var w Want
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
	return w
}

// fill writes tasks to an empty store, pauses it, and writes what it contains.
func fill(st store.Store, gobPath string) {
	f := &filler{st: st, c: durable.New(st, durable.WithSchedule("daily", daily{}))}
	f.fill()
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
	fmt.Println(gobPath, len(w.Entries), "entries", fmt.Sprintf("%+v", w.Stats), outcomes)
}

func main() {
	dir := os.Args[3]
	sq, err := sqlitestore.Open(filepath.Join(dir, "schema3.db"))
	must(err)
	fill(sq, filepath.Join(dir, "sqlite-schema3.gob"))
	must(sq.Close())

	pool, err := pgxpool.New(ctx, os.Args[2])
	must(err)
	_, err = pool.Exec(ctx, "DROP SCHEMA IF EXISTS tickless CASCADE")
	must(err)
	_, err = pgstore.Migrate(ctx, pool)
	must(err)
	pg := pgstore.New(pool)
	fill(pg, filepath.Join(dir, "postgres-schema1.gob"))
	must(pg.Close())

	rdb := redis.NewClient(&redis.Options{Addr: os.Args[1]})
	must(rdb.FlushAll(ctx).Err())
	rs := redisstore.New(rdb)
	fill(rs, filepath.Join(dir, "redis-schema6.gob"))
	out, err := os.Create(filepath.Join(dir, "schema6.txt"))
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
