package layout

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var variable = regexp.MustCompile(`TICKLESS_[A-Z][A-Z_]*[A-Z]`)

// TestContributing_NamesEveryVariable compares the environment variables that the
// code reads with those that CONTRIBUTING.md explains.
func TestContributing_NamesEveryVariable(t *testing.T) {
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := make(map[string]bool)
	for _, v := range variable.FindAllString(string(page), -1) {
		explained[v] = true
	}
	used := make(map[string]string)
	walkSources(t, func(path, source string) {
		for _, v := range variable.FindAllString(source, -1) {
			used[v] = path
		}
	})
	for v, path := range used {
		if !explained[v] {
			t.Errorf("%s uses %s, which CONTRIBUTING.md does not mention", path, v)
		}
	}
	for v := range explained {
		if used[v] == "" {
			t.Errorf("CONTRIBUTING.md mentions %s, which nothing uses", v)
		}
	}
}

// TestContributing_TargetsExist requires that the Makefile has each target that
// CONTRIBUTING.md names.
func TestContributing_TargetsExist(t *testing.T) {
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`make ([a-z0-9-]+)").FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(string(makefile), "\n"+m[1]+":") {
			t.Errorf("CONTRIBUTING.md names make %s, which does not exist", m[1])
		}
	}
}

// walkSources calls f for each Go file and script of the repository, and for the
// Makefile.
func walkSources(t *testing.T, f func(path, source string)) {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go", "Makefile", "scripts", ".ci")
	cmd.Dir = "../.."
	files, err := cmd.Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err) // not a clone
	}
	for path := range strings.FieldsSeq(string(files)) {
		source, err := os.ReadFile("../../" + path)
		if err != nil {
			continue // removed, and not committed yet
		}
		f(path, string(source))
	}
}
