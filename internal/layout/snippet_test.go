package layout

import (
	"go/format"
	"os"
	"strings"
	"testing"
)

// TestReadme_SnippetIsAnExample requires that the README's first program is the body of
// package timer's example, which the tests run.
func TestReadme_SnippetIsAnExample(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, snippet, ok := strings.Cut(string(readme), "\n```go\n")
	snippet, _, closed := strings.Cut(snippet, "\n```\n")
	if !ok || !closed {
		t.Fatal("the README has no Go snippet")
	}
	source, err := os.ReadFile("../../timer/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, example, ok := strings.Cut(string(source), "\nfunc Example() {\n")
	example, _, closed = strings.Cut(example, "\t// Output:")
	if !ok || !closed {
		t.Fatal("package timer has no example of its own")
	}
	var texts [2]string
	for i, text := range []string{snippet, example} {
		formatted, err := format.Source([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(formatted)) {
			texts[i] += strings.TrimSpace(line) + "\n"
		}
		texts[i] = strings.TrimSpace(texts[i])
	}
	if texts[0] != texts[1] {
		t.Errorf("the README says\n%s\n\nand the example\n%s", texts[0], texts[1])
	}
}
