package project

import (
	"fmt"
	"go/version"
	"strconv"
	"strings"
)

// libraryGoMinor is the Go version in this library's go.mod: 25 for go 1.25. A module that
// requires the library gets at least this version.
const libraryGoMinor = 25

// godebugsByMinor lists the GODEBUG settings whose defaults changed in each Go version:
// 21 is Go 1.21.
var godebugsByMinor = map[int]string{
	21: "panicnil",
	22: "httplaxcontentlength, httpmuxgo121, tls10server, tlsrsakex, tlsunsafeekm",
	23: "asynctimerchan, gotypesalias, httpservecontentkeepheaders, tls3des, winreadlinkvolume, winsymlink, x509keypairleaf, x509negativeserial",
	24: "gotestjsonbuildtext, httpcookiemaxnum, multipathtcp, randseednop, rsa1024min, tlsmlkem, urlmaxqueryparams, x509rsacrt, x509usepolicies",
	25: "containermaxprocs, decoratemappings, tlssha1, updatemaxprocs, x509sha256skid",
}

// goVersionWarning returns a warning if requiring the library raises the module's Go
// version and so changes GODEBUG defaults. Else it returns "".
func goVersionWarning(goVersion string) string {
	_, after, _ := strings.Cut(version.Lang("go"+goVersion), ".")
	minor, err := strconv.Atoi(after)
	if err != nil || minor >= libraryGoMinor || !strings.HasPrefix(goVersion, "1.") {
		return ""
	}
	var changed []string
	for v := minor + 1; v <= libraryGoMinor; v++ {
		if godebugsByMinor[v] != "" {
			changed = append(changed, godebugsByMinor[v])
		}
	}
	return fmt.Sprintf("requiring the library raises go.mod's go %s to 1.%d, and with it the defaults of these GODEBUG settings:\n  %s\n"+
		"a line \"godebug default=go1.%d\" in go.mod keeps the old ones", goVersion, libraryGoMinor, strings.Join(changed, ", "), max(minor, 20))
}
