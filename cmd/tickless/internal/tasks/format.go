package tasks

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// escapeText escapes an ID or another text for a terminal: \x00 for a NUL, \\ for a
// backslash.
func escapeText(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// unescapeID returns the ID that escapeText escaped.
func unescapeID(arg string) (string, error) {
	if !utf8.ValidString(arg) {
		return "", fmt.Errorf(`the ID %q is not UTF-8: write other bytes as \xff`, arg)
	}
	var id []byte
	for rest := arg; rest != ""; {
		r, multibyte, tail, err := strconv.UnquoteChar(rest, 0)
		if err != nil {
			return "", fmt.Errorf(`the ID %q has a wrong escape: a backslash is \\`, arg)
		}
		if rest = tail; multibyte {
			id = utf8.AppendRune(id, r)
		} else {
			id = append(id, byte(r))
		}
	}
	return string(id), nil
}

// parseTime parses a time, or a duration relative to now.
func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if s == "now" {
		return time.Now(), nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return time.Now().Add(d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		err = fmt.Errorf("%q is neither a time such as 2026-01-02T15:04:05Z nor now, nor a duration such as -1h", s)
	}
	return t, err
}

// formatTime formats a time, or "-" for the zero time, which stands for never or for unknown.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02T15:04:05.000Z07:00")
}

// shortLine returns the beginning of a text as one line, with control characters escaped.
func shortLine(s string) string {
	const longest = 80
	s = escapeText(strings.ToValidUTF8(s, "?"))
	if utf8.RuneCountInString(s) > longest {
		s = string([]rune(s)[:longest-3]) + "..."
	}
	return s
}

// urlParts matches a URL: its scheme, the user and password, the host and path, the query.
var urlParts = regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)([^\s"'<>/?#]*@)?([^\s"'<>?#]*)(\?[^\s"'<>#]*)?`)

// hideSecrets replaces the user, the password and the query of each URL in a text by dots.
func hideSecrets(s string) string {
	return urlParts.ReplaceAllStringFunc(s, func(found string) string {
		p := urlParts.FindStringSubmatch(found)
		if p[2] != "" {
			p[2] = "...@"
		}
		if p[4] != "" {
			p[4] = "?..."
		}
		return strings.Join(p[1:], "")
	})
}

// A textTable aligns text in columns.
type textTable struct{ w *tabwriter.Writer }

func newTable(cmd *cobra.Command, header ...any) textTable {
	t := textTable{tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)}
	if len(header) > 0 {
		t.addRow(header...)
	}
	return t
}

func (t textTable) addRow(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, cell)
	}
	fmt.Fprintln(t.w)
}

func (t textTable) flush() error { return t.w.Flush() }
