package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const registry = "docs/claims.txt"

// exported are the folders where the comments of exported identifiers are looked at too.
var exported = []string{
	"bucket", "clock", "delayqueue", "executor", "httptimeout", "idle", "purgatory", "timer", "timertest", "timingwheel",
	"observe", "observe/debug", "observe/expvar", "observe/otel", "observe/prom",
	"clocks/benbjohnson", "clocks/clockwork", "clocks/k8s", "clocks/quartz", "migrate",
	"durable", "durable/callback", "durable/diskstore", "durable/memstore", "durable/redisstore",
	"durable/store", "durable/store/storetest", "durable/metrics", "durable/tracing",
}

// files returns the files of a repository that may have claims, pages first: these are
// every README.md, and the .md files of every folder named docs.
func files(root string) (names []string, err error) {
	var sources []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "internal" || d.Name() == "testdata"):
			return fs.SkipDir
		case isPage(path):
			names = append(names, path)
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			sources = append(sources, path)
		}
		return nil
	})
	return append(names, sources...), err
}

// isPage reports whether a file is a page with claims.
func isPage(path string) bool {
	folder, name := filepath.Split(path)
	return name == "README.md" || filepath.Base(folder) == "docs" && strings.HasSuffix(name, ".md")
}

// A result is what a check has found.
type result struct {
	claims, proved int
	measured       int // those that no test would contradict
	wrong          []string
	unproved       []entry // in the order of the pages
}

// check looks at every claim of the repository at root.
func check(root string) (*result, error) {
	entries, err := readRegistry(filepath.Join(root, registry))
	if err != nil {
		return nil, err
	}
	p, err := newProofs(root)
	if err != nil {
		return nil, err
	}
	r := new(result)
	seen := map[string]bool{}
	names, err := files(root)
	if err != nil {
		return nil, err
	}
	for _, path := range names {
		name, _ := filepath.Rel(root, path)
		said, err := sentencesIn(path, slices.Contains(exported, filepath.Dir(name)))
		if err != nil {
			return nil, err
		}
		for _, s := range said {
			if s.isClaim(isPage(path)) && !s.isMutant() {
				r.claim(name, s, entries, p, seen)
			}
		}
	}
	for _, e := range entries {
		if !seen[e.file+": "+e.text] {
			r.wrong = append(r.wrong, fmt.Sprintf("%s:%d: %s does not say this any more: %q; look at the proof, and change the text here or delete it", registry, e.line, e.file, e.text))
		}
		for _, pr := range e.proofs {
			if err := p.check(pr); err != nil {
				r.wrong = append(r.wrong, fmt.Sprintf("%s:%d: no proof: %v", registry, pr.line, err))
			}
		}
	}
	return r, nil
}

// claim looks for the proof of one.
func (r *result) claim(file string, s sentence, entries []entry, p *proofs, seen map[string]bool) {
	key := file + ": " + s.text
	if seen[key] {
		return // it is said twice
	}
	seen[key] = true
	r.claims++
	missing := func(t string) bool { return len(p.foldersOf(t)) == 0 }
	if tests := s.names(); !s.promised && len(tests) > 0 && !slices.ContainsFunc(tests, missing) {
		r.count(!slices.ContainsFunc(tests, func(t string) bool { return !isBenchmark(t) }))
		return
	}
	i := slices.IndexFunc(entries, func(e entry) bool { return e.file == file && e.text == s.text })
	switch {
	case i < 0:
		r.unproved = append(r.unproved, entry{file: file, text: s.text})
		r.wrong = append(r.wrong, fmt.Sprintf("%s:%d: this has no proof: %q; prove it in %s (make claims-update adds the line), or say less", file, s.line, s.text, registry))
	case len(entries[i].proofs) == 0:
		r.wrong = append(r.wrong, fmt.Sprintf("%s:%d: no proof below it", registry, entries[i].line))
	default:
		r.count(!slices.ContainsFunc(entries[i].proofs, func(pr proof) bool { return pr.kind != "measured" }))
	}
}

func (r *result) count(measured bool) {
	if measured {
		r.measured++
	} else {
		r.proved++
	}
}

func sentencesIn(file string, exported bool) ([]sentence, error) {
	if strings.HasSuffix(file, ".go") {
		return comments(file, exported)
	}
	page, err := os.ReadFile(file)
	return sentencesOf(string(page)), err
}

// update adds the claims without an entry to the registry.
func (r *result) update() error {
	f, err := os.OpenFile(registry, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, e := range r.unproved {
		fmt.Fprintf(f, "\n%s: %s\n\tyet: to be proved\n", e.file, e.text)
	}
	return f.Close()
}
