package stores

import (
	"strings"
	"testing"
)

// The error for an invalid URL never contains the password, even if the password makes
// the URL invalid.
func TestLocationClient_ErrorsHaveNoPassword(t *testing.T) {
	for _, raw := range []string{"redis://:sec ret@h:7000", "redis://:sec/ret@h:7000", "redis://:1/ret@h:7000", "redis://user?ret@h:7000",
		"redis://:secret@h:port", "redis://:secret@h:7000/database", "redis://:secret@h:7000?bogus=ret", "http://:secret@h", "user:secret@h:7000"} {
		for _, cluster := range []bool{false, true} {
			client, err := Location{URL: raw, IsCluster: cluster}.Client()
			if err == nil {
				_ = client.Close()
				if !cluster { // a cluster has no databases
					t.Errorf("%s was accepted", raw)
				}
				continue
			}
			if strings.Contains(err.Error(), "ret") {
				t.Errorf("%s: %v", raw, err)
			}
		}
	}
}
