package redistest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Locale compiles a locale of the C library into a directory of its own, and returns
// the environment of a server that runs under it. It skips the test where it cannot:
// that takes the program localedef and the sources of locales, such as those of
// Debian's package locales.
func Locale(tb testing.TB, name string) []string {
	tb.Helper()
	dir := tempDir(tb)
	out, err := exec.Command("localedef", "-i", name, "-f", "UTF-8", filepath.Join(dir, name+".UTF-8")).CombinedOutput()
	if err != nil {
		tb.Skipf("no locale %s, which localedef and its sources (Debian's package locales) would make: %v\n%s", name, err, out)
	}
	return []string{"LOCPATH=" + dir, "LC_ALL=" + name + ".UTF-8"}
}
