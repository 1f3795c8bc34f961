package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentencesOf(t *testing.T) {
	const page = `# A title with a 7

It takes 5 ms. It is
never early, and
costs nothing. This is no claim. It takes half as long.

- at most one
- no promise

| a | b |
|---|---:|
| 1 | 2 |
| a | b |

| promise | test |
|---|---|
| it is final | |

| a | b |

` + "```\nalways 9\n```" + `
<!-- figures: begin (x) -->
| 3 |
<!-- figures: end -->
![never](a.svg)
`
	var claims []sentence
	for _, s := range sentencesOf(page) {
		if s.isClaim(true) {
			claims = append(claims, s)
		}
	}
	require.Equal(t, []sentence{
		{3, "It takes 5 ms.", false}, {3, "It is never early, and costs nothing.", false}, {5, "It takes half as long.", false}, {7, "at most one", false},
		{12, "| 1 | 2 |", false}, {17, "| it is final | |", true},
	}, claims)
}

// Pages promise in more words than comments.
func TestSentence_IsClaim(t *testing.T) {
	for _, text := range []string{
		"Nothing is lost: started = fired + stopped.", "A callback that panics harms no other timer.",
		"All of this works under a virtual clock.", "It survives a power cut.", "It cannot be late.",
		"What had not arrived is lost.", "The server loses it.", "A smaller one was tried and was slower.",
		"A receiver is safe from both.",
	} {
		s := sentence{text: text}
		require.True(t, s.isClaim(true), text)
		require.False(t, s.isClaim(false), text)
	}
	for _, text := range []string{
		"It is fast.", "`nothing` is a label.", "[it](nothing.md) is a page.", "Lost leases are counted.", "![nothing](a.svg)",
	} {
		require.False(t, sentence{text: text}.isClaim(true), text)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
}

// What is wrong with a small repository, whose README and registry a test writes, and of
// whose stores some are judged.
func wrong(t *testing.T, readme, registered string, judged ...string) []string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"README.md":                  readme,
		"docs/claims.txt":            registered,
		"docs/a.md":                  "Some text.",
		suite:                        "package storetest\n\nvar tests = []any{\n\t{\"Final\", testFinal},\n}\n",
		"a_test.go":                  "package a\n\nfunc TestA(t *testing.T) {}\n\nfunc TestC(t *testing.T) {}\n",
		"b/b_test.go":                "package b\n\nfunc TestC(t *testing.T) {}\n\nfunc BenchmarkD(b *testing.B) {}\n",
		"benchmarks/results/full.md": "| | time | ratio |\n|---|---:|---:|\n| start (ns) | 1,000 | **0.4** |\n| most (ms) | 2 | **13.9** (1,616) |\n",
		"Makefile":                   "x:\n\nstress: y\n",
	} {
		write(t, filepath.Join(root, name), text)
	}
	for _, dir := range judged {
		write(t, filepath.Join(root, dir, "a_test.go"), "package a\n\nfunc TestStore(t *testing.T) {\n\tstoretest.Run(t, open)\n}\n")
	}
	r, err := check(root)
	require.NoError(t, err)
	return r.wrong
}

func TestCheck(t *testing.T) {
	const claim = "It is never early."
	for _, c := range []struct{ name, readme, registered, want string }{
		{"no proof", "\n\n" + claim, "", `README.md:3: this has no proof: "It is never early."`},
		{"names its test", "Never early (`TestA`).", "", ""},
		{"a row of promises names its test", "| promise | test |\n|---|---|\n| It is final. | `TestA` |\n", "", "README.md:3: this has no proof"},
		{"names a test that is not there", "Never early (`TestB`).", "", "README.md:1: this has no proof"},
		{"a test", claim, "README.md: " + claim + "\n\ttest: TestA\n", ""},
		{"a test that is not there", claim, "README.md: " + claim + "\n\ttest: TestB\n", "docs/claims.txt:2: no proof: there is no TestB"},
		{"a test of two folders", claim, "README.md: " + claim + "\n\ttest: TestC\n", "docs/claims.txt:2: no proof: there is a TestC in each of ., b: name the folder"},
		{"a test of one of two", claim, "README.md: " + claim + "\n\ttest: b: TestC\n", ""},
		{"a test of another folder", claim, "README.md: " + claim + "\n\ttest: b: TestA\n", "there is no b: TestA"},
		{"nothing below it", claim, "README.md: " + claim + "\n", "docs/claims.txt:1: no proof below it"},
		{"yet to be proved", claim, "README.md: " + claim + "\n\tyet: to be proved\n", `there is no kind "yet"`},
		{"changed", "It is never late.", "README.md: " + claim + "\n\ttest: TestA\n", "README.md does not say this any more"},
		{"a result", claim, "README.md: " + claim + "\n\tresults: full.md: start (ns): ratio < 0.5\n\tresults: full.md: start (ns): time 900..1100\n", ""},
		{"a result elsewhere", claim, "README.md: " + claim + "\n\tresults: benchmarks/results/full.md: start (ns): ratio < 0.5\n", ""},
		{"a worse result", claim, "README.md: " + claim + "\n\tresults: full.md: start (ns): ratio < 0.3\n", "ratio is 0.4, not < 0.3"},
		{"no such row", claim, "README.md: " + claim + "\n\tresults: full.md: stop (ns): ratio < 0.3\n", "no figure in row"},
		{"the median", claim, "README.md: " + claim + "\n\tresults: full.md: most (ms): ratio = 13.9\n", ""},
		{"the worst of all runs", claim, "README.md: " + claim + "\n\tresults: full.md: most (ms): ratio most <= 1616\n", ""},
		{"a worse one", claim, "README.md: " + claim + "\n\tresults: full.md: most (ms): ratio most < 20\n", "ratio is 1616, not < 20"},
		{"the only one", claim, "README.md: " + claim + "\n\tresults: full.md: most (ms): time most = 2\n", ""},
		{"a quotient", claim, "README.md: " + claim + "\n\tresults: full.md: most (ms): ratio/time 6.9..7\n", ""},
		{"another quotient", claim, "README.md: " + claim + "\n\tresults: full.md: most (ms): ratio/time < 5\n", "ratio/time is 6.95, not < 5"},
		{"no divisor", claim, "README.md: " + claim + "\n\tresults: full.md: most (ms): ratio/heap < 5\n", "and 0 in"},
		{"a benchmark", claim, "README.md: " + claim + "\n\tmeasured: BenchmarkD\n", ""},
		{"a benchmark as a test", claim, "README.md: " + claim + "\n\ttest: BenchmarkD\n", "does not fail, whatever it finds"},
		{"a test that measures", claim, "README.md: " + claim + "\n\tmeasured: TestA\n", ""},
		{"no benchmark", claim, "README.md: " + claim + "\n\tmeasured: BenchmarkE\n", "there is no BenchmarkE"},
		{"code", claim, "README.md: " + claim + "\n\tcode: a_test.go: func TestA\n", ""},
		{"other code", claim, "README.md: " + claim + "\n\tcode: a_test.go: func TestB\n", `a_test.go has no "func TestB"`},
		{"a target", claim, "README.md: " + claim + "\n\trun: make stress\n", ""},
		{"no target", claim, "README.md: " + claim + "\n\trun: make tea\n", `Makefile has no "tea:"`},
		{"a test of all stores", claim, "README.md: " + claim + "\n\tstores: Final\n", ""},
		{"no test of all stores", claim, "README.md: " + claim + "\n\tstores: Early\n", "run.go has no"},
		{"none", claim, "README.md: " + claim + "\n\tnone: advice\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(wrong(t, c.readme, c.registered, stores...), "\n")
			if c.want == "" {
				require.Empty(t, got)
			} else {
				require.Contains(t, got, c.want)
			}
		})
	}
}

// A store that is not judged by the suite leaves unproved what its tests say of all.
func TestCheck_AStoreIsNotJudged(t *testing.T) {
	const claim = "It is never early."
	got := wrong(t, claim, "README.md: "+claim+"\n\tstores: Final\n", stores[0], stores[1])
	require.Len(t, got, 1)
	require.Contains(t, got[0], "no test in "+stores[2]+" calls storetest.Run")
}

// Pages are found wherever they are.
func TestFiles(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"README.md", "a/README.md", "a/b/docs/c.md", "a/d.md", "a/e.go", "a/e_test.go", "internal/README.md", ".git/README.md"} {
		write(t, filepath.Join(root, name), "")
	}
	names, err := files(root)
	require.NoError(t, err)
	for i := range names {
		names[i], err = filepath.Rel(root, names[i])
		require.NoError(t, err)
	}
	require.Equal(t, []string{"README.md", "a/README.md", "a/b/docs/c.md", "a/e.go"}, names)
}

func TestComments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.go")
	require.NoError(t, os.WriteFile(file, []byte(`// Package a is never early.
//
//	x := 9 // code
package a

// T is at most one.
type T struct{}

// Get takes O(1).
func (t *T) Get() {}

// get takes O(2).
func (t *T) get() {}

// Both are never used.
const (
	// A is always 1.
	A = 1
	B = 2
)
`), 0o666))
	for exported, want := range map[bool][]sentence{
		false: {{1, "Package a is never early.", false}},
		true: {
			{1, "Package a is never early.", false}, {6, "T: T is at most one.", false},
			{9, "T.Get: Get takes O(1).", false}, {17, "A: A is always 1.", false},
		},
	} {
		got, err := comments(file, exported)
		require.NoError(t, err)
		require.Equal(t, want, got)
		for _, s := range got {
			require.True(t, s.isClaim(false), s.text)
		}
	}
}
