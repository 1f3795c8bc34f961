package stores

import (
	"errors"
	"net/url"
	"strings"
)

// looksMisparsed reports whether u was probably parsed wrongly: a password with an
// unescaped / or ? moves the @ into the path or the query.
func looksMisparsed(u *url.URL) bool {
	return u.Scheme != "unix" && strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@")
}

// errorWithoutSecrets returns err, the reason why the URL raw was refused. If err may
// quote the password, it returns another error.
func errorWithoutSecrets(raw string, err error) error {
	if u, err := url.Parse(raw); err != nil || looksMisparsed(u) {
		return errors.New("the URL is not valid; in a user name or a password, write / as %2F, ? as %3F, # as %23 and @ as %40")
	}
	return err
}
