package stores

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// looksMisparsed reports whether u was probably parsed wrongly: a password with an
// unescaped / or ? moves the @ into the path or the query.
func looksMisparsed(u *url.URL) bool {
	return u.Scheme != "unix" && strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@")
}

// wrongURL returns the error for the URL of a flag that was refused because of err. It does not
// quote a password.
func (l Location) wrongURL(flag, raw string, err error) error {
	if u, err2 := url.Parse(raw); err2 != nil || looksMisparsed(u) {
		err = errors.New("the URL is not valid; in a user name or a password, write / as %2F, ? as %3F, # as %23 and @ as %40")
	}
	return cli.UsageError{Err: fmt.Errorf("--%s%s: %w", l.prefix, flag, err)}
}
