package serve

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
)

// minSecret is the smallest length of a secret in bytes, as Standard Webhooks asks.
const minSecret = 24

// readSecrets reads the secrets that sign calls. If the file does not exist and mayCreate is
// true, it makes one with a random secret, which only its owner can read.
func readSecrets(name string, mayCreate bool) ([][]byte, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && mayCreate {
		b = []byte("whsec_" + base64.StdEncoding.EncodeToString([]byte(rand.Text() + rand.Text())[:32]) + "\n")
		var f *os.File
		if f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_, err = f.Write(b)
			err = errors.Join(err, f.Sync(), f.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("secrets: %w", err)
	}
	var secrets [][]byte
	for n, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret := []byte(line)
		if encoded, ok := strings.CutPrefix(line, "whsec_"); ok { // the form of Standard Webhooks
			if secret, err = base64.StdEncoding.DecodeString(encoded); err != nil {
				return nil, fmt.Errorf("secrets: line %d of %s is not base64 after whsec_", n+1, name)
			}
		}
		if len(secret) < minSecret {
			return nil, fmt.Errorf("secrets: line %d of %s has %d bytes, fewer than %d", n+1, name, len(secret), minSecret)
		}
		secrets = append(secrets, secret)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("secrets: %s has no secret", name)
	}
	return secrets, nil
}
