package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The front page's headlines stand between these.
const (
	frontBegin = "<!-- figures: begin (make bench writes this) -->"
	frontEnd   = "<!-- figures: end -->"
)

// markers returns the lines between which the README's part for a mode is made.
func markers(mode string) (begin, end string) {
	if mode == processorsMode {
		return "<!-- processors: begin (make bench writes this) -->", "<!-- processors: end -->"
	}
	if slices.Contains(aside, mode) {
		return "<!-- " + mode + ": begin (make bench MODE=" + mode + " writes this) -->", "<!-- " + mode + ": end -->"
	}
	return "<!-- benchmarks: begin (make bench MODE=full writes this) -->", "<!-- benchmarks: end -->"
}

// rewrite replaces what stands between two markers in a file.
func rewrite(path, begin, end, with string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s: the markers of the benchmarks are missing", path)
	}
	return os.WriteFile(path, []byte(before+begin+"\n\n"+with+"\n"+end+after), 0o644)
}
