package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
)

const (
	begin = "<!-- scaling: begin (go run ./scaling in benchmarks writes this) -->"
	end   = "<!-- scaling: end -->"
)

func main() {
	log.SetFlags(0)
	page := flag.String("page", "", "file to write the tables to, between their markers")
	flag.Parse()
	if *page == "" {
		fmt.Print(tables())
		return
	}
	text, err := os.ReadFile(*page)
	if err != nil {
		log.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		log.Fatalf("scaling: %s has no markers", *page)
	}
	if err := os.WriteFile(*page, []byte(before+begin+"\n\n"+tables()+"\n"+end+after), 0o644); err != nil {
		log.Fatal(err)
	}
}

var procs = []int{1, 2, 4, 8, 16, 32, 64}

func tables() string {
	var b strings.Builder
	b.WriteString("**How many timers a second can fall due, by what the poller can do** (millions; in brackets, thousands for each proc).\n\n")
	b.WriteString("| procs | shards | no level down | one level (delays up to 6.5 s) | two levels (up to 28 min) | one level, with helpers |\n|---:|---:|---:|---:|---:|---:|\n")
	for _, p := range procs {
		fmt.Fprintf(&b, "| %d | %d |", p, load{procs: p}.homes())
		for moves := range 3 {
			fmt.Fprintf(&b, " %s |", millions(load{procs: p, pollers: 1, moves: float64(moves)}.limit(), p))
		}
		several := load{procs: p, pollers: 1 + p/procsPerHelper, moves: 1}
		fmt.Fprintf(&b, " %s |\n", millions(several.limit(), p))
	}
	for _, l := range []struct {
		title        string
		fired, stops float64 // each second, for each proc
	}{
		{"Request timeouts: each proc starts 200,000 a second, and one in a hundred fires", 2e3, 198e3},
		{"Heartbeats: each proc has 10,000 timers fire in a second, and stops 10,000", 10e3, 10e3},
		{"Nothing but timers that fire: 50,000 a second on each proc", 50e3, 0},
	} {
		fmt.Fprintf(&b, "\n**%s.** Each has come down one level.\n\n", l.title)
		b.WriteString("| procs | the poller works | a timer waits for its turn, p99 (µs) | queue's lock held | a shard's lock held | a stop waits (ns) |\n|---:|---:|---:|---:|---:|---:|\n")
		for _, p := range procs {
			o := load{procs: p, pollers: 1, moves: 1, fired: l.fired * float64(p), stops: l.stops * float64(p)}.simulate()
			if o.busy >= 0.99 {
				fmt.Fprintf(&b, "| %d | more than it can | | %s | | |\n", p, percent(o.queueBusy))
				continue
			}
			fmt.Fprintf(&b, "| %d | %s | %.0f | %s | %s | %.0f |\n", p, percent(o.busy), o.late/1e3, percent(o.queueBusy), percent(o.shardBusy), o.stopWaits)
		}
	}
	return b.String()
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func millions(rate float64, procs int) string {
	return fmt.Sprintf("%.2f (%.0f)", rate/1e6, rate/1e3/float64(procs))
}
