// Lines counts the cache lines that a start, a stop and a reset touch. It reads what
// TestScheduler_LinesTouched of package timer prints, and a trace of all its accesses to
// memory, as valgrind's lackey writes it:
//
//	go test -c -o timer.test ../timer
//	GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1 GOGC=off valgrind --tool=lackey --trace-mem=yes \
//		./timer.test -test.v -test.run TestScheduler_LinesTouched 2>&1 | go run ./scaling/lines
//
// For each operation it prints the medians of the lines written and of those only read,
// by what they belong to. The stack is left out. Other is what the runtime keeps for the
// proc that runs, and constants.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
)

const line = 64

// A region is what lies from one address to another.
type region struct {
	from, to uint64
	name     string
}

// touched is how many lines of a region's an operation wrote, and only read.
type touched struct{ written, read int }

// counts are what each run of an operation touched, by what that belongs to.
type counts map[string][]map[string]touched

func main() {
	log.SetFlags(0)
	c, err := count(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(c.table())
}

// count reads a trace.
func count(r io.Reader) (counts, error) {
	var regions []region
	c := counts{}
	op := ""                     // the operation that runs
	written := map[uint64]bool{} // of its lines, whether they were written
	where := map[uint64]string{} // what each belongs to
	find := func(at uint64) string {
		for _, r := range regions {
			if at >= r.from && at < r.to {
				return r.name
			}
		}
		return "other"
	}
	end := func(next string) {
		if op != "" && op != "end" {
			run := map[string]touched{}
			for l, w := range written {
				t := run[where[l]]
				if w {
					t.written++
				} else {
					t.read++
				}
				run[where[l]] = t
			}
			c[op] = append(c[op], run)
		}
		clear(written)
		clear(where)
		op = next
	}
	for in := bufio.NewScanner(r); in.Scan(); {
		text := in.Bytes()
		if rest, ok := bytes.CutPrefix(text, []byte("region ")); ok {
			reg, err := parseRegion(string(rest))
			if err != nil {
				return nil, err
			}
			regions = append(regions, reg)
			continue
		}
		// " L 1ffe,8" is a load, S a store, M both; "I" an instruction.
		if len(regions) == 0 || len(text) < 4 || text[0] != ' ' || text[2] != ' ' {
			continue
		}
		at, size, ok := bytes.Cut(text[3:], []byte(","))
		from, err1 := strconv.ParseUint(string(at), 16, 64)
		n, err2 := strconv.ParseUint(string(size), 10, 64)
		if !ok || err1 != nil || err2 != nil {
			continue
		}
		name := find(from)
		if next, ok := strings.CutPrefix(name, "mark: "); ok {
			if next != op {
				end(next)
			}
			continue
		}
		if op == "" || name == "stack" {
			continue
		}
		for l := from / line; l <= (from+n-1)/line; l++ {
			written[l] = written[l] || text[1] != 'L'
			where[l] = name
		}
	}
	if len(c) == 0 {
		return nil, fmt.Errorf("lines: no operation in the trace")
	}
	return c, nil
}

func parseRegion(text string) (region, error) {
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 {
		return region{}, fmt.Errorf("lines: a region has an address, a size and a name, got %q", text)
	}
	from, err1 := strconv.ParseUint(parts[0], 0, 64)
	size, err2 := strconv.ParseUint(parts[1], 0, 64)
	return region{from, from + size, parts[2]}, cmp.Or(err1, err2)
}

// table writes the medians.
func (c counts) table() string {
	var b strings.Builder
	b.WriteString("| operation | runs | of | written | only read |\n|---|---:|---|---:|---:|\n")
	var ops []string
	for op := range c {
		ops = append(ops, op)
	}
	slices.Sort(ops)
	for _, op := range ops {
		names := map[string]bool{}
		for _, run := range c[op] {
			for name := range run {
				names[name] = true
			}
		}
		var sorted []string
		for name := range names {
			sorted = append(sorted, name)
		}
		slices.Sort(sorted)
		for _, name := range sorted {
			w := c.median(op, func(run map[string]touched) int { return run[name].written })
			r := c.median(op, func(run map[string]touched) int { return run[name].read })
			if w+r > 0 {
				fmt.Fprintf(&b, "| %s | %d | %s | %d | %d |\n", op, len(c[op]), name, w, r)
			}
		}
	}
	return b.String()
}

func (c counts) median(op string, of func(map[string]touched) int) int {
	var all []int
	for _, run := range c[op] {
		all = append(all, of(run))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
