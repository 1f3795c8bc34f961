package migrate

import (
	"os/exec"
	"strings"
	"testing"
)

// standardLibraryRoots is complete, except for packages that a newer Go version adds.
func TestStandardLibrary(t *testing.T) {
	out, err := exec.Command("go", "list", "std").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for path := range strings.Lines(string(out)) {
		first, _, _ := strings.Cut(strings.TrimSpace(path), "/")
		if first != "internal" && first != "vendor" {
			found[first] = true
		}
	}
	for first := range standardLibraryRoots {
		if first != "unsafe" && !found[first] {
			t.Errorf("%s is not in the standard library", first)
		}
	}
	for first := range found {
		if !standardLibraryRoots[first] {
			t.Errorf("%s is missing", first)
		}
	}
}
