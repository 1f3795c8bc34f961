package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

const listPath = "internal/mutants/list.txt"

// A mutant is a change in one function, and the tests that may detect it. At least one of
// them must fail.
type mutant struct {
	lineNumber       int // line number in the list
	tests            []string
	file, function   string
	oldText, newText string
}

// readList reads the mutants from the file at path. An entry has four lines: the tests,
// the file and the function, "- " with the old text, and "+" with the new text.
func readList(path string) (mutants []mutant, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var entry []string
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			if len(entry) > 0 {
				return nil, fmt.Errorf("%s:%d: the entry above has fewer than four lines", path, i+1)
			}
			continue
		}
		entry = append(entry, line)
		if len(entry) < 4 {
			continue
		}
		file, function, _ := strings.Cut(entry[1], " ")
		oldText, hasOld := strings.CutPrefix(entry[2], "- ")
		newText, hasNew := strings.CutPrefix(entry[3], "+")
		if function == "" || !hasOld || !hasNew {
			return nil, fmt.Errorf("%s:%d: want four lines: tests, file and function, old text, new text", path, i-2)
		}
		mutants = append(mutants, mutant{
			lineNumber: i - 2, tests: strings.Fields(entry[0]), file: file, function: function, oldText: oldText, newText: strings.TrimPrefix(newText, " "),
		})
		entry = nil
	}
	if len(mutants) == 0 {
		return nil, fmt.Errorf("%s lists no change", path)
	}
	return mutants, nil
}

// String returns a description of the mutant, which the flag -match is matched against.
func (m mutant) String() string {
	return fmt.Sprintf("line %d: %s %s, %s", m.lineNumber, m.file, m.function, strings.Join(m.tests, " "))
}

// apply returns the file's text with the change made.
func (m mutant) apply(text string) (string, error) {
	declarationPattern := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|const )` + m.function + `\b`)
	for _, begin := range declarationPattern.FindAllStringIndex(text, -1) {
		functionText := text[begin[0]:]
		if end := strings.Index(functionText, "\n}\n"); end >= 0 {
			functionText = functionText[:end+3]
		}
		if at := strings.Index(functionText, m.oldText); at >= 0 {
			at += begin[0]
			return text[:at] + m.newText + text[at+len(m.oldText):], nil
		}
	}
	return "", fmt.Errorf("%s: function %s has no %q", m.file, m.function, m.oldText)
}
