package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A rowKey identifies a row of a table, for example {"StartStop", "n=1M/p=2", "ns/op"}.
type rowKey struct{ workload, params, unit string }

// results are the measurements of one file.
type results struct {
	header  map[string]string               // the file's first lines: commit, cpu and so on
	impls   []string                        // in the order of the file
	keys    []rowKey                        // in the order of the file
	samples map[rowKey]map[string][]float64 // by row and implementation
}

// procsSuffix is the number that the testing package appends to the names of benchmarks.
var procsSuffix = regexp.MustCompile(`-\d+$`)

// parseResults parses the output of Go's benchmarks.
func parseResults(text string) (*results, error) {
	r := &results{header: map[string]string{}, samples: map[rowKey]map[string][]float64{}}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if name, ok := strings.CutPrefix(fields[0], "Benchmark"); ok && len(fields) >= 4 {
			if err := r.addLine(procsSuffix.ReplaceAllString(name, ""), fields[2:]); err != nil {
				return nil, fmt.Errorf("%w in %q", err, line)
			}
		} else if name, value, ok := strings.Cut(line, ": "); ok && !strings.Contains(name, " ") {
			r.header[name] = strings.TrimSpace(value)
		}
	}
	if len(r.keys) == 0 {
		return nil, errors.New("no line starts with Benchmark")
	}
	return r, nil
}

func (r *results) addLine(name string, figures []string) error {
	workload, pairs, _ := strings.Cut(name, "/")
	implName := ""
	var params []string
	for part := range strings.SplitSeq(pairs, "/") {
		if v, ok := strings.CutPrefix(part, "impl="); ok {
			implName = v
		} else if part != "" {
			params = append(params, part)
		}
	}
	if !slices.Contains(r.impls, implName) {
		r.impls = append(r.impls, implName)
	}
	for pair := range slices.Chunk(figures, 2) {
		if len(pair) < 2 {
			return errors.New("a figure has no unit")
		}
		v, err := strconv.ParseFloat(pair[0], 64)
		if err != nil {
			return err
		}
		k := rowKey{workload, strings.Join(params, "/"), pair[1]}
		if r.samples[k] == nil {
			r.samples[k] = map[string][]float64{}
			r.keys = append(r.keys, k)
		}
		r.samples[k][implName] = append(r.samples[k][implName], v)
	}
	return nil
}

// median returns the median of impl's figures in row k. ok is false if there are none.
func (r *results) median(k rowKey, impl string) (v float64, ok bool) {
	values := slices.Sorted(slices.Values(r.samples[k][impl]))
	if len(values) == 0 {
		return 0, false
	}
	middleIndex := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middleIndex-1] + values[middleIndex]) / 2, true
	}
	return values[middleIndex], true
}

// largestFigure returns the largest of impl's figures in row k, or 0 if there are none.
func (r *results) largestFigure(k rowKey, impl string) float64 {
	return slices.Max(append([]float64{0}, r.samples[k][impl]...))
}
