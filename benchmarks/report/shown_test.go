package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tables that are shown are those of the results: nobody has changed a figure in
// one of them by hand, or forgotten to have the report written again.
func TestTables_AreThoseOfTheResults(t *testing.T) {
	const dir, redisDir = "../results", "../redis/results"
	shows := func(page, want string) bool {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), strings.TrimSpace(want))
	}
	for _, mode := range append([]string{"full"}, aside...) {
		dir, page := dir, "../README.md"
		if mode == redis {
			dir, page = redisDir, redisDir+"/../README.md"
		}
		r, err := readResults(filepath.Join(dir, mode+".txt"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has not been run yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if !shows(filepath.Join(dir, mode+".md"), tables(r, false)) {
			t.Errorf("%s/%s.md differs from %s.txt: run the report", dir, mode, mode)
		}
		if !shows(page, tables(r, true)) {
			t.Errorf("%s differs from %s.txt: run the report with -mode %s", page, mode, mode)
		}
	}
	figures, err := front(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !shows("../../README.md", figures) {
		t.Error("the figures of README.md differ from those of rates.txt and busy.txt")
	}
}
