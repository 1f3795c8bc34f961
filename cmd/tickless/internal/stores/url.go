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
	if err != nil || misread(u) {
		return "a URL that cannot be read"
	}
	safeURL := url.URL{Scheme: u.Scheme, Host: u.Host}
	database := strings.TrimPrefix(u.Path, "/")
	switch _, err := strconv.ParseUint(database, 10, 16); {
	case u.Scheme == "unix":
		safeURL.Path = u.Path
		database = ""
	case err != nil:
		database = ""
	}
	if db := u.Query().Get("db"); db != "" {
		if _, err := strconv.ParseUint(db, 10, 16); err == nil {
			database = db
		}
	}
	if database == "" {
		return safeURL.String()
	}
	return safeURL.String() + ", database " + database
}

// misread reports whether u was probably parsed wrongly: a password with an unescaped /
// or ? moves the @ into the path or the query.
func misread(u *url.URL) bool {
	return u.Scheme != "unix" && strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@")
}

// withoutSecrets returns err, the reason why the URL raw was refused. If err may quote
// the password, it returns another error.
func withoutSecrets(raw string, err error) error {
	if u, err := url.Parse(raw); err != nil || misread(u) {
		return errors.New("the URL is not valid; in a user name or a password, write / as %2F, ? as %3F, # as %23 and @ as %40")
	}
	return err
}
