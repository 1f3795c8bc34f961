package stores

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// PrintableURL returns the parts of a server's URL that are safe to print: scheme, host
// and database. The other parts may contain a secret.
func PrintableURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || looksMisparsed(u) {
		return "a URL that cannot be read"
	}
	safeURL := url.URL{Scheme: u.Scheme, Host: u.Host}
	databaseNumber := strings.TrimPrefix(u.Path, "/")
	switch _, err := strconv.ParseUint(databaseNumber, 10, 16); {
	case u.Scheme == "unix":
		safeURL.Path = u.Path
		databaseNumber = ""
	case err != nil:
		databaseNumber = ""
	}
	if db := u.Query().Get("db"); db != "" {
		if _, err := strconv.ParseUint(db, 10, 16); err == nil {
			databaseNumber = db
		}
	}
	if databaseNumber == "" {
		return safeURL.String()
	}
	return safeURL.String() + ", database " + databaseNumber
}

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
