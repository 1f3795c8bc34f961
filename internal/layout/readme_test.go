package layout

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuarantees_TestsExist requires that every test named in docs/guarantees.md exists.
func TestGuarantees_TestsExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) == 0 {
		t.Fatal("docs/guarantees.md names no test")
	}
	declared := declaredTests(t)
	for _, n := range named {
		if !declared[n[1]] {
			t.Errorf("docs/guarantees.md names %s, which does not exist", n[1])
		}
	}
}

// declaredTests returns the names of all tests and fuzz targets of the repository.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declared := make(map[string]bool)
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
	walkSources(t, func(path, source string) {
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range declaration.FindAllStringSubmatch(source, -1) {
				declared[m[1]] = true
			}
		}
	})
	return declared
}

// TestDocs_LinksLead requires that every link of the pages to a file of the repository
// works.
func TestDocs_LinksLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../benchmarks/*.md", "../../durable/*.md", "../../durable/docs/*.md", "../../durable/*/*.md", "../../durable/*/docs/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
					t.Errorf("%s links to %s, which is not there", strings.TrimPrefix(page, "../../"), m[1])
				}
			}
		}
	}
}

// walkSources calls f for each Go file of the repository.
func walkSources(t *testing.T, f func(path, source string)) {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	cmd.Dir = "../.."
	files, err := cmd.Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err) // not a clone
	}
	for path := range strings.FieldsSeq(string(files)) {
		source, err := os.ReadFile("../../" + path)
		if err != nil {
			continue // removed and not yet committed
		}
		f(path, string(source))
	}
}
