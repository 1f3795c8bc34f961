package store

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsName reports whether s may name a key, a handler, a schedule, a group, a zone or a sender: it has
// 1 to [MaxID] bytes, is valid UTF-8 and has no control characters (C0, DEL and C1).
//
// Tasks that were stored under other names can be read, cancelled, purged and exported.
func IsName(s string) bool { return s != "" && isText(s) }

func isBadName(s string) bool { return !IsName(s) }

// isText is IsName for names that may be empty.
func isText(s string) bool {
	return len(s) <= MaxID && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Shorten returns a short form of an input, for error texts: even quoted it has at most 200
// bytes.
func Shorten(s string) string {
	n := min(len(s), 190)
	for n > 0 && len(strconv.Quote(s[:n])) > 195 {
		n = n * 4 / 5
	}
	if n == len(s) {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
