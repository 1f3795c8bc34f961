package main

import (
	"regexp"
	"strings"
)

// A sentence is what can be a claim.
type sentence struct {
	line int
	text string // on one line
	// promised is true for a row of a table with a column of promises: each is a claim,
	// whatever its words.
	promised bool
}

var (
	promise = regexp.MustCompile(`(?i)\b(never|always|at (the )?most|at (the )?least|no more than|guarantee\w*|exactly (once|one)|allocates?|constant time|does not block)\b|\bO\(`)
	// bold is what pages promise besides. In comments such words are mostly of what the
	// code beside them does, which its tests are about anyway.
	bold      = regexp.MustCompile(`(?i)\b(nothing|cannot|surviv\w*|harms?|works? under|(is|are|was|were) lost|loses|all of (this|it)|safe from|was tried)\b`)
	number    = regexp.MustCompile(`(^|[\s(~"+-])\d[\d.,]*\b`)
	spelled   = regexp.MustCompile(`(?i)\b(half|thirds?|quarters?|fifths?|tenths?|hundredths?|twice|hundreds?|thousands?|millions?|dozens?)\b`)
	notSpoken = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)")
	end       = regexp.MustCompile("[.!?:][)\"*]*\\s+[A-Z`*\\[(\"]")
	item      = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
	generated = regexp.MustCompile(`(?s)<!-- (\w+): begin.*?<!-- \w+: end -->`)
	fenced    = regexp.MustCompile("(?ms)^```.*?^```$")
	named     = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z0-9]\\w*)`")
	ruled     = regexp.MustCompile(`^\|[-:| ]+\|$`)
	promises  = regexp.MustCompile(`^\| promise \|`)
)

// isClaim reports whether s, of a page or of a comment, says something that may be true or
// false.
func (s sentence) isClaim(ofPage bool) bool {
	if strings.HasPrefix(s.text, "![") {
		return false // a picture
	}
	spoken := notSpoken.ReplaceAllString(s.text, "")
	return s.promised || promise.MatchString(spoken) || ofPage && bold.MatchString(spoken) || number.MatchString(spoken) || spelled.MatchString(spoken)
}

// names are the tests and benchmarks that it names: such a claim brings its proof along.
func (s sentence) names() (tests []string) {
	for _, m := range named.FindAllStringSubmatch(s.text, -1) {
		tests = append(tests, m[1])
	}
	return tests
}

// isMutant reports whether it is a row of docs/guarantees.md that internal/mutants reads.
func (s sentence) isMutant() bool {
	return strings.HasPrefix(s.text, "|") && strings.Contains(s.text, ".go, `")
}

// sentencesOf returns what a page says.
func sentencesOf(page string) (all []sentence) {
	for _, re := range []*regexp.Regexp{generated, fenced} {
		page = re.ReplaceAllStringFunc(page, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	}
	var paragraph []string
	begin, promised := 0, false
	flush := func() {
		all = append(all, split(strings.Join(paragraph, "\n"), begin)...)
		paragraph = nil
	}
	for i, l := range strings.Split(page, "\n") {
		text := strings.TrimSpace(l)
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
			flush()
		case strings.HasPrefix(text, "|"):
			flush()
			switch {
			case promises.MatchString(text):
				promised = true
			case !ruled.MatchString(text):
				all = append(all, sentence{i + 1, text, promised})
			}
			continue
		default:
			if item.MatchString(l) {
				flush()
				text = item.ReplaceAllString(l, "")
			}
			if len(paragraph) == 0 {
				begin = i + 1
			}
			paragraph = append(paragraph, text)
		}
		promised = false
	}
	flush()
	return all
}

// split returns the sentences of a paragraph that begins at a line.
func split(paragraph string, line int) (all []sentence) {
	for paragraph != "" {
		cut := len(paragraph)
		if at := end.FindStringIndex(paragraph); at != nil {
			cut = at[1] - 1
		}
		s := paragraph[:cut]
		all = append(all, sentence{line: line, text: strings.Join(strings.Fields(s), " ")})
		line += strings.Count(s, "\n")
		paragraph = paragraph[cut:]
	}
	return all
}
