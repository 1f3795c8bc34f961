package layout

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var forSystems = regexp.MustCompile(`_(windows|darwin|unix|linux|freebsd)(_[a-z0-9]+)?(_test)?\.go$`)

// TestCross_HasEveryModuleWithFilesForOneSystem requires that `make cross` vets each
// module that has files for one system only.
func TestCross_HasEveryModuleWithFilesForOneSystem(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^CROSS := \$\(addprefix \$\(CURDIR\)/,(.*)\)$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile has no CROSS")
	}
	vetted := strings.Fields(string(m[1]))
	seen := 0
	walkSources(t, func(file, source string) {
		header, _, _ := strings.Cut(source, "\npackage ")
		tag := regexp.MustCompile(`(?m)^//go:build .*\b(windows|darwin|unix|linux)\b`).MatchString(header)
		if !strings.HasSuffix(file, ".go") || strings.Contains(file, "/testdata/") || !tag && !forSystems.MatchString(file) {
			return
		}
		seen++
		dir := path.Dir(file)
		for dir != "." {
			if _, err := os.Stat("../../" + dir + "/go.mod"); err == nil {
				break
			}
			dir = path.Dir(dir)
		}
		if !slices.Contains(vetted, dir) {
			t.Errorf("%s is for one system, and the Makefile's CROSS has not the module %s", file, dir)
		}
	})
	if seen == 0 {
		t.Error("there is no file for one system")
	}
}
