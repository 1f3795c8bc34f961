package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("mutants: ")
	matchFlag := flag.String("match", "", "make only changes whose tests, file or function match this regular expression")
	timeoutFlag := flag.Duration("timeout", time.Minute, "how long a test may take; a test that takes longer counts as failed")
	listFlag := flag.String("list", listPath, "the file with the changes")
	dirFlag := flag.String("C", ".", "the folder of the changed module; the list's names are relative to it")
	flag.Parse()
	if err := os.Chdir(*dirFlag); err != nil {
		log.Fatal(err)
	}
	mutants, err := readList(*listFlag)
	if err != nil {
		log.Fatal(err)
	}
	matchPattern, err := regexp.Compile(*matchFlag)
	if err != nil {
		log.Fatal(err)
	}
	mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return !matchPattern.MatchString(m.String()) })
	packagesOfTests, err := findTests()
	if err != nil {
		log.Fatal(err)
	}
	undetectedCount := 0
	for _, m := range mutants {
		startTime := time.Now()
		output, err := m.run(packagesOfTests, *timeoutFlag)
		result := "fails: " + output
		if err != nil {
			undetectedCount++
			result = "WRONG: " + err.Error()
		}
		fmt.Printf("%s: %.1f s: %s\n", m, time.Since(startTime).Seconds(), result)
	}
	fmt.Printf("%d changes; for %d of them no test failed, or the change could not be made\n", len(mutants), undetectedCount)
	if undetectedCount > 0 {
		os.Exit(1)
	}
}

// run runs the mutant's tests on the changed code, and returns the line of their output
// that says what has failed.
func (m mutant) run(packagesOfTests packagesByTest, timeout time.Duration) (output string, err error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	changedText, err := m.apply(string(text))
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	absFile, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	overlayJSON, err := json.Marshal(map[string]any{"Replace": map[string]string{absFile: file}})
	if err != nil {
		return "", err
	}
	for path, text := range map[string]string{file: changedText, overlay: string(overlayJSON)} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			return "", err
		}
	}
	packages, err := packagesOfTests.packagesOf(m.tests)
	if err != nil {
		return "", err
	}
	testArgs := []string{
		"test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout", timeout.String(),
		"-run", "^(" + strings.Join(m.tests, "|") + ")",
	}
	combined, err := exec.Command("go", append(testArgs, packages...)...).CombinedOutput()
	switch {
	case err == nil:
		return "", fmt.Errorf("no test fails")
	case strings.Contains(string(combined), "[build failed]"), strings.Contains(string(combined), "[setup failed]"):
		return "", fmt.Errorf("it does not compile: %.300s", combined)
	}
	return strings.TrimSpace(failurePattern.FindString(string(combined))), nil
}

// packagesByTest maps the name of each test of the core to its packages.
type packagesByTest map[string][]string // by the name of the test

var testFuncPattern = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)

func findTests() (packagesByTest, error) {
	packagesOfTests := packagesByTest{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && isSkippedDir(path):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range testFuncPattern.FindAllSubmatch(text, -1) {
			packagesOfTests[string(m[1])] = append(packagesOfTests[string(m[1])], "./"+filepath.Dir(path))
		}
		return err
	})
	return packagesOfTests, err
}

// packagesOf returns the packages that have the tests. Each element of tests is the
// beginning of a test's name.
func (found packagesByTest) packagesOf(tests []string) (packages []string, err error) {
	for _, t := range tests {
		countBefore := len(packages)
		for name, in := range found {
			if strings.HasPrefix(name, t) {
				packages = append(packages, in...)
			}
		}
		if len(packages) == countBefore {
			return nil, fmt.Errorf("there is no test %s", t)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages), nil
}

// isSkippedDir reports whether dir is hidden, or is the root of another module.
func isSkippedDir(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || strings.HasPrefix(filepath.Base(dir), ".")
}

var failurePattern = regexp.MustCompile(`(?m)^\s*(--- FAIL|panic|fatal error): .*$`)
