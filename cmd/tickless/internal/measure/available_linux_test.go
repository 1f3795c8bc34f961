package measure

import (
	"os"
	"path/filepath"
	"testing"
)

// The limit that leaves least is the one that counts, be it of a group that the process'
// own one is in.
func TestGroupMemory(t *testing.T) {
	write := func(file, text string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	root := t.TempDir()
	self := write(filepath.Join(root, "self"), "1:name=systemd:/other\n0::/a/b/c\n")
	check := func(want int64, limited bool) {
		t.Helper()
		if n, ok := groupMemory(self, root); n != want || ok != limited {
			t.Errorf("left: %d, %v, want %d, %v", n, ok, want, limited)
		}
	}
	check(0, false)
	write(filepath.Join(root, "a/b/c/memory.max"), "max\n")
	write(filepath.Join(root, "a/b/c/memory.current"), "500\n")
	check(0, false)
	write(filepath.Join(root, "a/memory.max"), "10000\n")
	write(filepath.Join(root, "a/memory.current"), "4000\n")
	write(filepath.Join(root, "a/memory.stat"), "anon 3000\ninactive_file 1000\nactive_file 5\n")
	check(7000, true)
	write(filepath.Join(root, "a/b/memory.max"), "2000\n")
	write(filepath.Join(root, "a/b/memory.current"), "500\n")
	check(1500, true)
	write(filepath.Join(root, "a/b/memory.current"), "2500\n")
	check(0, true)
	self = filepath.Join(root, "none")
	check(0, false)
}
