package main

import (
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const folder = "api"

func main() {
	log.SetFlags(0)
	log.SetPrefix("api: ")
	update := flag.Bool("update", false, "write the listing instead of comparing it")
	flag.Parse()
	listing, err := list()
	if err != nil {
		log.Fatal(err)
	}
	if *update {
		err = write(listing)
	} else {
		err = compare(listing)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// write replaces the files of the folder by those of a listing, which has the lines
// of each package.
func write(listing map[string][]string) error {
	old, err := read()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, lines := range listing {
		delete(old, name)
		text := strings.Join(lines, "\n") + "\n"
		if err := os.WriteFile(file(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for name := range old {
		if err := os.Remove(file(name)); err != nil {
			return err
		}
	}
	return nil
}

// compare prints the lines by which a listing differs from the files.
func compare(listing map[string][]string) error {
	old, err := read()
	if err != nil {
		return err
	}
	differ := 0
	all := maps.Clone(listing)
	maps.Copy(all, old)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, line := range difference(old[name], listing[name]) {
			differ++
			fmt.Printf("%s: %s\n", file(name), line)
		}
	}
	if differ > 0 {
		return fmt.Errorf("%d lines differ; if the exported names are to change, run `make api-update` and say so in CHANGELOG.md", differ)
	}
	return nil
}

// difference returns the lines that are in one of two sorted listings only, those of
// the old one with a minus and those of the new one with a plus.
func difference(old, now []string) []string {
	var d []string
	for _, line := range old {
		if _, found := slices.BinarySearch(now, line); !found {
			d = append(d, "-"+line)
		}
	}
	for _, line := range now {
		if _, found := slices.BinarySearch(old, line); !found {
			d = append(d, "+"+line)
		}
	}
	return d
}

// read returns the lines of the files.
func read() (map[string][]string, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	listing := make(map[string][]string)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		key := strings.TrimSuffix(filepath.Base(name), ".txt")
		listing[key] = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	}
	return listing, nil
}

func file(name string) string { return filepath.Join(folder, name+".txt") }
