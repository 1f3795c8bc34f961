package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// guarantees returns those that the package comment of timer lists, each on one
// line. It is the one place that states them; other pages quote it.
func guarantees(t *testing.T) []string {
	t.Helper()
	list := between(t, "../../timer/doc.go", "\n// # Guarantees\n", "\n// # ")
	var all []string
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "//"))
		number, text, _ := strings.Cut(line, ". ")
		if n, err := strconv.Atoi(number); err == nil && n == len(all)+1 {
			all = append(all, text)
		} else if line != "" && len(all) > 0 {
			all[len(all)-1] += " " + line
		}
	}
	if len(all) == 0 {
		t.Fatal("the package comment of timer lists no guarantee")
	}
	return all
}

// between returns what stands in a file between begin and the next end.
func between(t *testing.T, path, begin, end string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok1 := strings.Cut(string(text), begin)
	part, _, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no part between %q and %q", path, begin, end)
	}
	return part
}

// TestReadme_QuotesGuarantees requires that each guarantee of the README is the
// beginning of one of package timer's.
func TestReadme_QuotesGuarantees(t *testing.T) {
	all := guarantees(t)
	quoted := 0
	for line := range strings.Lines(between(t, "../../README.md", "\n## Guarantees\n", "\n## ")) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			continue
		}
		quoted++
		if !quotes(all, text) {
			t.Errorf("the README promises %q, which is not the beginning of a guarantee of package timer", text)
		}
	}
	if quoted == 0 {
		t.Error("the README quotes no guarantee")
	}
}

func quotes(all []string, text string) bool {
	for _, g := range all {
		if strings.HasPrefix(g, text) {
			return true
		}
	}
	return false
}

// TestGuarantees_NamedInOrder compares docs/guarantees.md and the tests of package
// timer with the list: each guarantee has a row under its number, which begins as
// the guarantee does, and a test of that number; and there are no others.
func TestGuarantees_NamedInOrder(t *testing.T) {
	all := guarantees(t)
	page, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \|`).FindAllStringSubmatch(string(page), -1)
	if len(rows) != len(all) {
		t.Errorf("docs/guarantees.md has %d rows with a number, and package timer %d guarantees", len(rows), len(all))
	}
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			t.Fatalf("row %d of docs/guarantees.md has the number %s", i+1, row[1])
		}
		if i < len(all) && !strings.HasPrefix(strings.ToLower(all[i]), strings.ToLower(row[2])) {
			t.Errorf("docs/guarantees.md has %q as number %d, and package timer %q", row[2], i+1, all[i])
		}
	}
	tested := make(map[int]bool)
	for name := range declaredTests(t) {
		if m := regexp.MustCompile(`^TestGuarantee(\d\d)_`).FindStringSubmatch(name); m != nil {
			n, _ := strconv.Atoi(m[1])
			tested[n] = true
		}
	}
	for n := range tested {
		if n < 1 || n > len(all) {
			t.Errorf("there is a test of guarantee %d, which package timer does not list", n)
		}
	}
	for i := range all {
		if !tested[i+1] {
			t.Errorf("no test is named TestGuarantee%02d_...", i+1)
		}
	}
}

// TestGuarantees_TestsExist keeps docs/guarantees.md true: every test that it names
// must be there.
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

// TestDocs_LinksLead requires that what the pages link to within the repository is
// there.
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
