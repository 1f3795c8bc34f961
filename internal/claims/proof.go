package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// proofs is what proofs are looked up in.
type proofs struct {
	root  string
	tests []string // names of functions that go test runs
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)

func newProofs(root string) (*proofs, error) {
	p := &proofs{root: root}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		// Also files that are no tests: a suite for others is none.
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			p.tests = append(p.tests, string(m[1]))
		}
		return err
	})
	return p, err
}

// check reports why a proof proves nothing.
func (p *proofs) check(pr proof) error {
	switch pr.kind {
	case "test":
		return p.checkTest(pr.what)
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
	return fmt.Errorf("there is no kind %q of proof; test, results, code, run and none are some", pr.kind)
}

func (p *proofs) contains(file, text string) error {
	got, err := os.ReadFile(filepath.Join(p.root, file))
	if err == nil && !strings.Contains(string(got), text) {
		err = fmt.Errorf("%s has no %q", file, strings.TrimSpace(text))
	}
	return err
}

func (p *proofs) checkTest(name string) error {
	begin, any := strings.CutSuffix(name, "*")
	for _, t := range p.tests {
		if t == name || any && strings.HasPrefix(t, begin) {
			return nil
		}
	}
	return fmt.Errorf("there is no %s", name)
}

// checkResults looks a figure up in a file of benchmarks/results: FILE: ROW: COLUMN RANGE.
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
	text, err := os.ReadFile(filepath.Join(p.root, "benchmarks/results", file))
	if err != nil {
		return err
	}
	figures := figuresOf(string(text), row, column)
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

// figuresOf returns the figures in a row and column of all tables of a page.
func figuresOf(page, row, column string) (figures []float64) {
	index := -1
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			index = -1
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i, c := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(c), "*`")
		}
		if index < 0 {
			for i, c := range cells {
				if c == column {
					index = i
				}
			}
		}
		if cells[0] == row && index > 0 && index < len(cells) {
			if f, err := strconv.ParseFloat(strings.ReplaceAll(cells[index], ",", ""), 64); err == nil {
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
