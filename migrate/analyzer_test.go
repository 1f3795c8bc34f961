package migrate

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestAnalyzer_Golden runs the analyzer on the packages in testdata/src. The "want"
// comments are the expected diagnostics, the .golden files the fixed files.
func TestAnalyzer_Golden(t *testing.T) {
	if testing.Short() {
		t.Skip("it type-checks the standard library; the tests of package project run the same code")
	}
	entries, err := os.ReadDir("testdata/src")
	if err != nil {
		t.Fatal(err)
	}
	var names []string // all at once: the standard library is type-checked once
	for _, e := range entries {
		files, err := filepath.Glob(filepath.Join("testdata/src", e.Name(), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > 0 { // not a package that only others import
			names = append(names, e.Name())
		}
	}
	if *update {
		writeGolden(t, names)
	}
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), analyzer, names...)
}

func writeGolden(t *testing.T, names []string) {
	for _, result := range analysistest.Run(t, analysistest.TestData(), analyzer, names...) {
		for _, f := range result.Result.(*Report).Files {
			src, err := os.ReadFile(f.Name)
			if err != nil {
				t.Fatal(err)
			}
			out, err := f.Apply(src)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(f.Name+".golden", out, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
