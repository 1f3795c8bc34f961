package main

import (
	"bytes"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A chart is one picture.
type chart struct {
	name, title   string // the name is the file's
	width, height vg.Length
	draw          func(draw.Canvas)
}

// save draws c into a file.
func save(c chart, path, format string) error {
	canvas, err := draw.NewFormattedCanvas(c.width, c.height, format)
	if err != nil {
		return err
	}
	c.draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	out := b.Bytes()
	if format == "svg" {
		out = bytes.ReplaceAll(out, []byte(fontFamily), []byte(fontFamily+fallbacks))
	}
	return os.WriteFile(path, out, 0o644)
}

// Who looks at an SVG may not have the font that the text was measured in. The
// first two of the others are as wide; the last is up to a fifth wider, for which
// wider leaves room.
const (
	fontFamily = "font-family:Liberation Sans"
	fallbacks  = ",Arial,Helvetica,sans-serif"
)

// wider returns by how much a label may be wider than measured.
func wider(label vg.Length) vg.Length { return label / 4 }

// charts returns all pictures that r has the figures for.
func charts(r *results, curves []curve) []chart {
	plot.DefaultFont.Variant = "Sans"
	var cs []chart
	add := func(name, title, unit string, groups ...group) {
		if c, ok := barChart(r, name, title, unit, groups); ok {
			cs = append(cs, c)
		}
	}
	// of names the figures of a workload with the largest n that it has for the
	// params.
	of := func(label, workload, unit string, params ...string) group {
		best, n := "", -1.0
		for _, p := range r.params(workload, unit) {
			if v := size(param(p, "n")); v > n && v <= 1e6 && has(p, params) {
				best, n = p, v
			}
		}
		return group{label, key{workload, best, unit}}
	}
	one, two := "1 proc", "2 procs"
	add("startstop", "Start and stop a timer, 1M others pending", "ns",
		of(one, "StartStop", "ns/op", "n=1M", "p=1"), of(two, "StartStop", "ns/op", "n=1M", "p=2"))
	add("startstop-fixed", "Start and stop a timer, one delay of 30 s for all", "ns",
		of(one, "StartStopFixed", "ns/op", "p=1"), of(two, "StartStopFixed", "ns/op", "p=2"))
	add("churn", "Stop a random one of 1M timers, start another", "ns",
		of(one, "Churn", "ns/op", "n=1M", "p=1"), of(two, "Churn", "ns/op", "n=1M", "p=2"))
	add("reset-later", "Reset a pending timer to later, 1 proc", "ns",
		of("in turn", "Reset", "ns/op", "to=later", "order=turn", "p=1"), of("at random", "Reset", "ns/op", "to=later", "order=random", "p=1"))
	add("reset-earlier", "Reset a pending timer to earlier, 1 proc", "ns",
		of("in turn", "Reset", "ns/op", "to=earlier", "order=turn", "p=1"), of("at random", "Reset", "ns/op", "to=earlier", "order=random", "p=1"))
	add("start", "Start one of 1M timers that stay pending", "ns",
		of(one, "Held", "ns/start", "p=1"), of(two, "Held", "ns/start", "p=2"))
	add("memory", "Memory a pending timer, 1M pending", "bytes",
		of("live heap", "Held", "B/timer", "p=1"), of("peak of the process", "Held", "peak-B/timer", "p=1"))
	add("gc", "A full garbage collection, 1M timers pending", "ms", of("", "Held", "gc-ms", "p=1"))
	add("expiry-late", "1M timers due within one second: how late the last one ran", "ms", of("", "Expiry", "last-ms", "p=2"))
	add("expiry-cpu", "1M timers due within one second: CPU time", "s", of("", "Expiry", "cpu-s", "p=2"))
	add("lateness", "How late timers fire, 99th percentile", "ms",
		of("machine idle", "Lateness", "p99-ms", "load=idle"), of("all procs busy", "Lateness", "p99-ms", "load=busy"))
	add("stalls", "The slowest start and stop while 1M others fall due", "µs",
		of("slowest", "Stalls", "max-us"), of("p99.99", "Stalls", "p99.99-us"))
	add("busy-burst", "100k due at once beside 4 computing goroutines: the last late by", "ms",
		of(one, "BusyBurst", "last-ms", "busy=4", "p=1"), of(two, "BusyBurst", "last-ms", "busy=4", "p=2"))
	add("busy-rate", "1,000 timers a second beside 16 computing goroutines: late at p99", "ms",
		of(one, "BusyRate", "p99-ms", "busy=16", "p=1"), of(two, "BusyRate", "p99-ms", "busy=16", "p=2"))
	add("idle-cpu", "100k timers pending far away: CPU time a second", "µs", of("", "Idle", "cpu-us/s"))
	add("idle-switches", "100k timers pending far away: context switches a second", "1/s", of("", "Idle", "switches/s"))
	add("heartbeats-cpu", "Heartbeats of 100k connections: CPU time a heartbeat", "ns", of("", "Heartbeats", "cpu-ns/beat"))
	add("heartbeats-memory", "Heartbeats of 100k connections: live heap a connection", "bytes", of("", "Heartbeats", "B/conn"))
	add("withtimeout", "WithTimeout and cancel, 1 proc (time: package context)", "ns",
		of("parent background", "WithTimeout", "ns/op", "parent=background", "p=1"),
		of("parent cancellable", "WithTimeout", "ns/op", "parent=cancellable", "p=1"))
	for _, p := range []string{"1", "2"} {
		procs := map[string]string{"1": one, "2": two}[p]
		for _, g := range []struct{ name, title, workload string }{
			{"growth-startstop-p" + p, "Start and stop a timer, " + procs, "StartStop"},
			{"growth-churn-p" + p, "Stop a random timer, start another, " + procs, "Churn"},
		} {
			if c, ok := growthChart(r, g.name, g.title, g.workload, p); ok {
				cs = append(cs, c)
			}
		}
	}
	for _, load := range []string{"idle", "busy"} {
		title := map[string]string{"idle": "machine idle", "busy": "all procs busy"}[load]
		if c, ok := curveChart(curves, "lateness-"+load, "How late timers fire, "+title+" (at the left edge: early or at once)", load); ok {
			cs = append(cs, c)
		}
	}
	return cs
}

// has reports whether params, such as n=1M/p=2, have all of want, such as p=2.
func has(params string, want []string) bool {
	for _, w := range want {
		name, v := cut(w)
		if param(params, name) != v {
			return false
		}
	}
	return true
}
