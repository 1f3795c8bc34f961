package service

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// minSecret is the smallest length of a token, in bytes.
const minSecret = 24

// A Token allows requests: all of them, or only those that read.
type Token struct {
	Name      string // for the audit log
	CanChange bool

	hash [sha256.Size]byte // of the secret
}

// ReadTokens reads a file of tokens: lines of a name, ro or rw, and a secret of at least 24
// characters. Empty lines and lines that begin with # are ignored. Errors name the line, and
// never contain a secret.
func ReadTokens(r io.Reader) ([]Token, error) {
	var tokens []Token
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
			continue
		case len(fields) != 3 || fields[1] != "ro" && fields[1] != "rw":
			return nil, fmt.Errorf("line %d is not a name, ro or rw, and a secret", n)
		case len(fields[2]) < minSecret:
			return nil, fmt.Errorf("line %d: the secret has %d characters, fewer than %d", n, len(fields[2]), minSecret)
		}
		tokens = append(tokens, Token{Name: fields[0], CanChange: fields[1] == "rw", hash: sha256.Sum256([]byte(fields[2]))})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("no token: a line has a name, ro or rw, and a secret")
	}
	return tokens, nil
}

// findToken returns the token with a secret, or nil. It takes the same time for all.
func findToken(tokens []Token, secret string) (found *Token) {
	hash := sha256.Sum256([]byte(secret))
	for i := range tokens {
		if subtle.ConstantTimeCompare(tokens[i].hash[:], hash[:]) == 1 {
			found = &tokens[i]
		}
	}
	return found
}

// A session is what the page's cookie holds after a login: the token's name, when it ends,
// and a signature with the token's hash as the key. All nodes with the token accept it.
const sessionLifetime = 12 * time.Hour

func (t *Token) session(now time.Time) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(t.Name)) + "." + strconv.FormatInt(now.Add(sessionLifetime).Unix(), 10)
	return text + "." + t.sign(text)
}

func (t *Token) sign(text string) string {
	m := hmac.New(sha256.New, t.hash[:])
	m.Write([]byte("tickless session " + text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// findSession returns the token of a session, or nil.
func findSession(tokens []Token, session string, now time.Time) (found *Token) {
	i := strings.LastIndexByte(session, '.')
	if i < 0 {
		return nil
	}
	text, signature := session[:i], session[i+1:]
	name, end, _ := strings.Cut(text, ".")
	ends, err := strconv.ParseInt(end, 10, 64)
	if err != nil || now.Unix() >= ends {
		return nil
	}
	for i := range tokens {
		t := &tokens[i]
		if base64.RawURLEncoding.EncodeToString([]byte(t.Name)) == name && hmac.Equal([]byte(t.sign(text)), []byte(signature)) {
			found = t
		}
	}
	return found
}
