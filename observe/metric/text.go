package metric

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text returns s as a label may have it: bytes that are not UTF-8 are written as \xff. With
// one replacement character for all, different labels might become equal, and Prometheus
// then refuses the whole scrape.
func Text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}
