package metric

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text returns s as the value of a label. It writes each byte that is not UTF-8 as hex,
// such as \xff: if one character replaced them all, different values could become equal.
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
