package project

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGodebugs_AreTheToolchains compares godebugs with the table in Go's source.
func TestGodebugs_AreTheToolchains(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src/internal/godebugs/table.go"))
	if err != nil {
		t.Skip(err)
	}
	for v := 21; v <= libraryGoMinor; v++ {
		var want []string
		for _, m := range regexp.MustCompile(fmt.Sprintf(`\{Name: "(\w+)",.*Changed: %d\b`, v)).FindAllStringSubmatch(string(src), -1) {
			want = append(want, m[1])
		}
		if got := strings.Split(godebugsByMinor[v], ", "); !slices.Equal(got, want) {
			t.Errorf("Go 1.%d: %q, the toolchain has %q", v, got, want)
		}
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), fmt.Sprintf("\ngo 1.%d", libraryGoMinor)) {
		t.Errorf("the library's go.mod has another Go version than 1.%d", libraryGoMinor)
	}
}

func TestRaises(t *testing.T) {
	for version, want := range map[string]string{
		"1.25.0": "", "1.26": "", "1.25rc1": "", "2.0": "", "": "",
		"1.24.3": "containermaxprocs", "1.22": "asynctimerchan", "1.21.0": "httpmuxgo121", "1.17": "panicnil",
	} {
		if got := goVersionWarning(version); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("go %s: %q, want %q", version, got, want)
		}
	}
	if got := goVersionWarning("1.24"); strings.Contains(got, "asynctimerchan") {
		t.Error("a setting that changed before Go 1.24 is listed for 1.24: ", got)
	}
}
