package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// A key names what is measured in one unit: StartStop, n=1M/p=2, ns/op.
type key struct{ workload, params, unit string }

// results are the measurements of one file.
type results struct {
	config  map[string]string // the lines at its head
	impls   []string          // in the order of the file
	keys    []key             // the same
	samples map[key]map[string][]float64

	// versions are the measurements of each version of Go, in the order of the
	// file, if it has several.
	versions []*results
}

func newResults() *results {
	return &results{config: map[string]string{}, samples: map[key]map[string][]float64{}}
}

// readResults reads a file in the format of Go's benchmarks.
func readResults(path string) (*results, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := newResults()
	var goes []string
	byGo := map[string]*results{}
	reader := benchfmt.NewReader(bufio.NewReader(f), path)
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.Result:
			r.add(rec)
			v := rec.GetConfig("go")
			if byGo[v] == nil {
				goes = append(goes, v)
				byGo[v] = newResults()
				r.versions = append(r.versions, byGo[v])
			}
			byGo[v].add(rec)
		case *benchfmt.SyntaxError:
			return nil, rec
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	if len(r.keys) == 0 {
		return nil, errors.New(path + " holds no measurements")
	}
	if len(goes) == 1 {
		r.versions = nil
	}
	r.config["go"] = strings.Join(goes, ", ")
	return r, nil
}

func (r *results) add(rec *benchfmt.Result) {
	for _, c := range rec.Config {
		r.config[c.Key] = string(c.Value)
	}
	base, parts := rec.Name.Parts()
	var impl string
	var params []string
	for _, part := range parts {
		part := string(part)
		switch {
		case strings.HasPrefix(part, "-"): // the number of procs of the program
		case strings.HasPrefix(part, "/impl="):
			impl = strings.TrimPrefix(part, "/impl=")
		default:
			params = append(params, part[1:])
		}
	}
	if !slices.Contains(r.impls, impl) {
		r.impls = append(r.impls, impl)
	}
	for _, v := range rec.Values {
		unit, value := v.Unit, v.Value
		if v.OrigUnit != "" { // as the benchmark wrote it
			unit, value = v.OrigUnit, v.OrigValue
		}
		k := key{string(base), strings.Join(params, "/"), unit}
		if r.samples[k] == nil {
			r.samples[k] = map[string][]float64{}
			r.keys = append(r.keys, k)
		}
		r.samples[k][impl] = append(r.samples[k][impl], value)
	}
}

// median returns the median of what impl took for k; ok is false if that was not
// measured.
func (r *results) median(k key, impl string) (v float64, ok bool) {
	values := r.samples[k][impl]
	if len(values) == 0 {
		return 0, false
	}
	s := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(s, 0.95).Center, true
}

// mean returns the arithmetic mean of what impl took for k; ok is false if there are not
// several runs of it.
func (r *results) mean(k key, impl string) (v float64, ok bool) {
	values := r.samples[k][impl]
	if len(values) < 2 {
		return 0, false
	}
	for _, x := range values {
		v += x / float64(len(values))
	}
	return v, true
}

// most returns the largest figure for k, of any implementation.
func (r *results) most(k key) float64 {
	largest := 0.0
	for impl := range r.samples[k] {
		largest = max(largest, r.mostOf(k, impl))
	}
	return largest
}

// mostOf returns the largest figure for k of all runs of impl, 0 if there are none.
func (r *results) mostOf(k key, impl string) float64 {
	return slices.Max(append([]float64{0}, r.samples[k][impl]...))
}

// params returns the different params of a workload that has figures in unit.
func (r *results) params(workload, unit string) []string {
	var ps []string
	for _, k := range r.keys {
		if k.workload == workload && k.unit == unit {
			ps = append(ps, k.params)
		}
	}
	return ps
}

// param returns the value of one of the params: of n in "n=1M/p=2", 1M.
func param(params, name string) string {
	for part := range strings.SplitSeq(params, "/") {
		if v, ok := strings.CutPrefix(part, name+"="); ok {
			return v
		}
	}
	return ""
}

// size returns the number that is written as 100k or 1M.
func size(s string) float64 {
	scale := 1.0
	if digits, ok := strings.CutSuffix(s, "k"); ok {
		s, scale = digits, 1e3
	} else if digits, ok := strings.CutSuffix(s, "M"); ok {
		s, scale = digits, 1e6
	}
	v, _ := strconv.ParseFloat(s, 64)
	return v * scale
}

// A curve is the share of timers that were late by a time at most. Its points
// go up.
type curve struct {
	impl, load string
	share, ms  []float64
}

// readCurves reads lines of implementation, load, share, milliseconds. Repeated
// measurements follow one another; the last is taken. Without the file there are
// no curves.
func readCurves(path string) ([]curve, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	var curves []curve
	for _, line := range lines {
		if len(line) != 4 {
			return nil, fmt.Errorf("%s: a line has %d fields, want 4", path, len(line))
		}
		share, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			return nil, err
		}
		ms, err := strconv.ParseFloat(line[3], 64)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(curves, func(c curve) bool { return c.impl == line[0] && c.load == line[1] })
		if i < 0 {
			i = len(curves)
			curves = append(curves, curve{impl: line[0], load: line[1]})
		}
		c := &curves[i]
		if share == 0 {
			c.share, c.ms = nil, nil
		}
		c.share, c.ms = append(c.share, share), append(c.ms, ms)
	}
	return curves, nil
}
