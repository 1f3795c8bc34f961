package main

import (
	"fmt"
	"os"
	"strings"
)

// An entry is a claim in the registry.
type entry struct {
	line       int
	file, text string
	proofs     []proof
}

// A proof is one line below a claim.
type proof struct {
	line       int
	kind, what string
}

// readRegistry reads docs/claims.txt.
func readRegistry(path string) (entries []entry, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for i, l := range strings.Split(string(text), "\n") {
		head, rest, ok := strings.Cut(strings.TrimSpace(l), ": ")
		switch {
		case strings.TrimSpace(l) == "" || strings.HasPrefix(l, "#"):
		case !ok:
			return nil, fmt.Errorf("%s:%d: neither FILE: CLAIM nor, indented, KIND: PROOF", path, i+1)
		case !strings.HasPrefix(l, "\t"):
			entries = append(entries, entry{line: i + 1, file: head, text: rest})
		case len(entries) == 0:
			return nil, fmt.Errorf("%s:%d: a proof without a claim above it", path, i+1)
		default:
			e := &entries[len(entries)-1]
			e.proofs = append(e.proofs, proof{i + 1, head, rest})
		}
	}
	return entries, nil
}
