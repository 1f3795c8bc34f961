package layout

import (
	"slices"
	"strings"
	"testing"
)

// durableMayImport lists the packages of module durable that each of them may import, tests not
// counted. The root is ".". durable/README.md draws the rooms.
var durableMayImport = map[string][]string{
	"store":               {},
	"store/machine":       {"store"},
	"store/waiters":       {"store"},
	"store/batch":         {"store", "store/machine"},
	"store/pages":         {"store"},
	"memstore":            {"store", "store/machine", "store/waiters"},
	"internal/random":     {},
	"internal/places":     {"store"},
	"internal/record":     {"internal/random", "store"},
	"internal/worker":     {"internal/places", "internal/random", "store"},
	".":                   {"internal/places", "internal/random", "internal/record", "internal/worker", "store"},
	"callback":            {"."},
	"metrics":             {"."},
	"store/storetest":     {".", "store"}, // a judge
	"internal/simulation": {".", "internal/random", "store", "store/storetest"},
}

// TestLayout_RoomsOfDurable requires that the rooms of durable import downwards only.
func TestLayout_RoomsOfDurable(t *testing.T) {
	room := func(path string) (string, bool) {
		below, ours := strings.CutPrefix(path+"/", module+"/durable/")
		return strings.TrimSuffix(below, "/"), ours
	}
	for _, p := range packages(t, "durable", "-json=ImportPath,Imports") {
		name, _ := room(p.ImportPath)
		if name == "" {
			name = "."
		}
		allowed, known := durableMayImport[name]
		if !known {
			t.Errorf("durable/%s has no room: add it to durableMayImport", name)
		}
		for _, path := range p.Imports {
			below, ours := room(path)
			if below == "" {
				below = "."
			}
			if ours && !slices.Contains(allowed, below) {
				t.Errorf("durable/%s imports durable/%s, which durableMayImport does not list for it", name, below)
			}
		}
	}
}
