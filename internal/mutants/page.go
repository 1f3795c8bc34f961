package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// A mutant is a change of one line and the tests that fail with it.
type mutant struct {
	line     int // of the page
	row      string
	file, fn string
	old, new string
	last     bool // the last such place in fn is changed, else the first
	tests    []string
}

var (
	change = regexp.MustCompile("^([a-z0-9_/]+\\.go), `([A-Za-z0-9_]+)`[^:]*: (the last |the first )?`([^`]*)` (deleted|to `([^`]*)`)")
	test   = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]*)(?:\\.\\.\\.)?`")
)

// readPage returns the mutants of a page: the rows of its tables whose last cells are
// tests, a change, and what the test said. An empty cell, or "the same", is that of the
// row above.
func readPage(path string) (mutants []mutant, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var tests []string
	var above mutant
	for i, row := range strings.Split(string(text), "\n") {
		cells := splitRow(row)
		if len(cells) < 4 {
			tests = nil
			continue
		}
		testCell, changeCell := cells[len(cells)-3], cells[len(cells)-2]
		if named := test.FindAllStringSubmatch(testCell, -1); named != nil {
			tests = nil
			for _, m := range named {
				tests = append(tests, m[1])
			}
		}
		m := above
		if changeCell != "the same" {
			parts := change.FindStringSubmatch(changeCell)
			if parts == nil {
				if strings.Contains(changeCell, ".go") {
					return nil, fmt.Errorf("%s:%d: not of the form \"FILE, `FUNC`: `OLD` to `NEW`\" or \"... `OLD` deleted\": %s", path, i+1, changeCell)
				}
				continue // a heading, or a test of others that has no change
			}
			m = mutant{file: parts[1], fn: parts[2], last: parts[3] == "the last ", old: parts[4], new: parts[6]}
		}
		m.line, m.row, m.tests = i+1, row, tests
		if len(tests) == 0 {
			return nil, fmt.Errorf("%s:%d: no test is named here or above", path, i+1)
		}
		mutants = append(mutants, m)
		above = m
	}
	if len(mutants) == 0 {
		return nil, fmt.Errorf("%s lists no change", path)
	}
	return mutants, nil
}

// splitRow returns the cells of a table's row, nil if it is none.
func splitRow(row string) []string {
	if !strings.HasPrefix(row, "|") {
		return nil
	}
	const bar = "\x00"
	row = strings.ReplaceAll(row, `\|`, bar)
	cells := strings.Split(strings.Trim(row, "|"), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, bar, "|"))
	}
	return cells
}

// apply returns the text of the file with the change made.
func (m mutant) apply(text string) (string, error) {
	head := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|const )` + m.fn + `\b`)
	for _, begin := range head.FindAllStringIndex(text, -1) {
		body := text[begin[0]:]
		if end := strings.Index(body, "\n}\n"); end >= 0 {
			body = body[:end+3]
		}
		at := strings.Index(body, m.old)
		if m.last {
			at = strings.LastIndex(body, m.old)
		}
		if at >= 0 {
			at += begin[0]
			return text[:at] + m.new + text[at+len(m.old):], nil
		}
	}
	return "", fmt.Errorf("%s: function %s has no %q", m.file, m.fn, m.old)
}
