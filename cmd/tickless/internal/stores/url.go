package stores

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// Shown is the URL of a server for people: its scheme, host and database. All else may be
// a secret.
func Shown(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || misread(u) {
		return "a URL that cannot be read"
	}
	out := url.URL{Scheme: u.Scheme, Host: u.Host}
	database := strings.TrimPrefix(u.Path, "/")
	switch _, err := strconv.ParseUint(database, 10, 16); {
	case u.Scheme == "unix":
		out.Path = u.Path
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
		return out.String()
	}
	return out.String() + ", database " + database
}

// misread reports whether the user and the password do not end where they seem to: with a
// / or a ? in a password, the rest of it is taken for a path or a parameter.
func misread(u *url.URL) bool {
	return u.Scheme != "unix" && strings.Contains(u.Opaque+u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@")
}

// withoutSecrets returns err, of a URL that is refused, unless it may quote the password:
// what package url says quotes all of the URL.
func withoutSecrets(raw string, err error) error {
	if u, err := url.Parse(raw); err != nil || misread(u) {
		return errors.New("the URL cannot be read; in a user or a password, / is %2F, ? is %3F, # is %23 and @ is %40")
	}
	return err
}
