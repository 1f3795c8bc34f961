package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// proofs is what proofs are looked up in.
type proofs struct {
	root  string
	tests map[string][]string // names of functions that go test runs, by folder
	// judged are the folders with a test that runs the suite of the stores.
	judged []string
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)

func newProofs(root string) (*proofs, error) {
	p := &proofs{root: root, tests: map[string][]string{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		folder, _ := filepath.Rel(root, filepath.Dir(path))
		// Also files that are no tests: a suite for others is none.
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			p.tests[folder] = append(p.tests[folder], string(m[1]))
		}
		if strings.HasSuffix(path, "_test.go") && strings.Contains(string(text), "\tstoretest.Run(t, ") {
			p.judged = append(p.judged, folder)
		}
		return err
	})
	return p, err
}

// check reports why a proof proves nothing.
func (p *proofs) check(pr proof) error {
	switch pr.kind {
	case "test", "measured":
		return p.checkTest(pr.what, pr.kind == "measured")
	case "stores":
		return p.checkStores(pr.what)
	case "results":
		return p.checkResults(pr.what)
	case "code":
		file, text, ok := strings.Cut(pr.what, ": ")
		if !ok {
			return fmt.Errorf("not of the form code: FILE: TEXT")
		}
		return p.contains(file, text)
	case "run":
		target, ok := strings.CutPrefix(pr.what, "make ")
		if !ok {
			return fmt.Errorf("not of the form run: make TARGET")
		}
		return p.contains("Makefile", "\n"+strings.TrimRight(strings.Fields(target)[0], ",;")+":")
	case "none":
		return nil
	}
	return fmt.Errorf("there is no kind %q of proof; test, measured, stores, results, code, run and none are some", pr.kind)
}

func (p *proofs) contains(file, text string) error {
	got, err := os.ReadFile(filepath.Join(p.root, file))
	if err == nil && !strings.Contains(string(got), text) {
		err = fmt.Errorf("%s has no %q", file, strings.TrimSpace(text))
	}
	return err
}

// checkTest looks for a test, or what only measures: NAME, or FOLDER: NAME where several folders
// have one of that name.
func (p *proofs) checkTest(what string, measured bool) error {
	folder, name, ok := strings.Cut(what, ": ")
	if !ok {
		folder, name = "", what
	}
	if isBenchmark(name) && !measured {
		return fmt.Errorf("%s does not fail, whatever it finds; say measured: %s, and add what would fail if there is anything", name, what)
	}
	in := p.foldersOf(name)
	if ok {
		in = slices.DeleteFunc(in, func(dir string) bool { return dir != folder })
	}
	switch len(in) {
	case 0:
		return fmt.Errorf("there is no %s", what)
	case 1:
		return nil
	}
	return fmt.Errorf("there is a %s in each of %s: name the folder", what, strings.Join(in, ", "))
}

func isBenchmark(name string) bool { return strings.HasPrefix(name, "Benchmark") }

// foldersOf returns the folders that have a test of a name, sorted.
func (p *proofs) foldersOf(name string) (in []string) {
	begin, any := strings.CutSuffix(name, "*")
	for dir, tests := range p.tests {
		if slices.ContainsFunc(tests, func(t string) bool { return t == name || any && strings.HasPrefix(t, begin) }) {
			in = append(in, dir)
		}
	}
	slices.Sort(in)
	return in
}

// Every store has a test that runs the suite, which lists its tests in a file.
const suite = "durable/store/storetest/run.go"

var stores = []string{"durable/memstore", "durable/diskstore", "durable/redisstore"}

// checkStores looks for a test of the suite, and that all stores are tested with it.
func (p *proofs) checkStores(name string) error {
	if err := p.contains(suite, fmt.Sprintf("\t{%q, test", name)); err != nil {
		return err
	}
	for _, dir := range stores {
		if !slices.Contains(p.judged, dir) {
			return fmt.Errorf("no test in %s calls storetest.Run", dir)
		}
	}
	return nil
}

// checkResults looks a figure up: FILE: ROW: COLUMN RANGE, COLUMN/COLUMN RANGE for what one
// is of the other, or COLUMN most RANGE for the worst of all runs. A FILE without a folder
// is in benchmarks/results.
func (p *proofs) checkResults(what string) error {
	file, rest, ok1 := strings.Cut(what, ": ")
	at := strings.LastIndex(rest, ": ")
	if !ok1 || at < 0 {
		return fmt.Errorf("not of the form results: FILE: ROW: COLUMN RANGE")
	}
	row := rest[:at]
	column, bounds, ok := strings.Cut(rest[at+2:], " ")
	if !ok {
		return fmt.Errorf("%q has no range", rest[at+2:])
	}
	if !strings.Contains(file, "/") {
		file = "benchmarks/results/" + file
	}
	text, err := os.ReadFile(filepath.Join(p.root, file))
	if err != nil {
		return err
	}
	bounds, most := strings.CutPrefix(bounds, "most ")
	column, by, quotient := strings.Cut(column, "/")
	figures := figuresOf(string(text), row, column, most)
	if quotient {
		divisors := figuresOf(string(text), row, by, most)
		if len(divisors) != len(figures) {
			return fmt.Errorf("%s, row %q: %d figures in column %q, and %d in %q", file, row, len(figures), column, len(divisors), by)
		}
		for i := range figures {
			figures[i] /= divisors[i]
		}
		column += "/" + by
	}
	if len(figures) == 0 {
		return fmt.Errorf("%s has no figure in row %q and column %q", file, row, column)
	}
	for _, f := range figures {
		if ok, err := within(f, bounds); err != nil || !ok {
			return fmt.Errorf("%s, row %q: %s is %v, not %s (%v)", file, row, column, f, bounds, err)
		}
	}
	return nil
}

// figuresOf returns the figures in a row and column of all tables of a page: of those
// that are followed by the worst of all runs, in brackets, these if most is set.
func figuresOf(page, row, column string, most bool) (figures []float64) {
	index := -1
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			index = -1
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i, c := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(c), "`")
		}
		if index < 0 {
			index = slices.Index(cells, column)
		}
		if cells[0] == row && index > 0 && index < len(cells) {
			median, worst, hasWorst := strings.Cut(cells[index], " (")
			if most && hasWorst {
				median = strings.TrimSuffix(worst, ")")
			}
			if f, err := strconv.ParseFloat(strings.NewReplacer(",", "", "*", "").Replace(median), 64); err == nil {
				figures = append(figures, f)
			}
		}
	}
	return figures
}

// within reports whether f is in a range: "< 2", "1..2".
func within(f float64, bounds string) (bool, error) {
	if low, high, ok := strings.Cut(bounds, ".."); ok {
		l, err1 := strconv.ParseFloat(low, 64)
		h, err2 := strconv.ParseFloat(high, 64)
		if err1 != nil || err2 != nil {
			return false, fmt.Errorf("not a range")
		}
		return l <= f && f <= h, nil
	}
	op, limit, _ := strings.Cut(bounds, " ")
	n, err := strconv.ParseFloat(limit, 64)
	if err != nil {
		return false, fmt.Errorf("not a range")
	}
	switch op {
	case "<":
		return f < n, nil
	case "<=":
		return f <= n, nil
	case ">":
		return f > n, nil
	case ">=":
		return f >= n, nil
	case "=":
		return f == n, nil
	}
	return false, fmt.Errorf("not a range")
}
