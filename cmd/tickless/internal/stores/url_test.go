package stores

import (
	"strings"
	"testing"
)

func TestPrintableURL(t *testing.T) {
	for in, want := range map[string]string{
		"redis://localhost:6379":                  "redis://localhost:6379",
		"redis://user:secret@h:7000/3":            "redis://h:7000, database 3",
		"rediss://:secret@h:7000?db=4":            "rediss://h:7000, database 4",
		"redis://:secret@h:7000?addr=h2:7001":     "redis://h:7000",
		"redis://:secret@h:7000?password=secret":  "redis://h:7000",
		"redis://h:7000/secret":                   "redis://h:7000",
		"unix://user:secret@/run/redis.sock?db=2": "unix:///run/redis.sock, database 2",
		"redis://:sec ret@h:7000":                 "a URL that cannot be read",
		"redis://:1/secret@h:7000":                "a URL that cannot be read",
		"redis://user?secret@h:7000":              "a URL that cannot be read",
		"redis://user#secret@h:7000":              "a URL that cannot be read",
		":secret@h:7000":                          "a URL that cannot be read",
		"user:secret@h:7000":                      "a URL that cannot be read",
	} {
		if got := PrintableURL(in); got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}

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
