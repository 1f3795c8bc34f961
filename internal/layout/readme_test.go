package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme_GuaranteesNameTestsThatExist keeps the table of guarantees true: every
// test that it names must be there.
func TestReadme_GuaranteesNameTestsThatExist(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "\n## Guarantees\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := regexp.MustCompile("`(?:Test|Fuzz)[A-Za-z0-9_]+`").FindAllString(table, -1)
	if len(named) == 0 {
		t.Fatal("the README's guarantees name no test")
	}

	declared := make(map[string]bool)
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
	err = filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range declaration.FindAllStringSubmatch(string(source), -1) {
			declared[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range named {
		if !declared[strings.Trim(n, "`")] {
			t.Errorf("the README's guarantees name %s, which does not exist", n)
		}
	}
}
