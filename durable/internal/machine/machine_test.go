package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestString(t *testing.T) {
	require.Regexp(t, `^commit (\w+\+?|unknown), go\S+.*, `+runtime.GOOS+`/`+runtime.GOARCH+`, .+, \d+ procs, .+, .+$`, String())
}

func TestField(t *testing.T) {
	path := filepath.Join(t.TempDir(), "info")
	require.NoError(t, os.WriteFile(path, []byte("flags : a b\nmodel name\t: One: 2 GHz\nmodel name\t: Another\n"), 0o600))
	require.Equal(t, "One: 2 GHz", field(path, "model name"))
	require.Empty(t, field(path, "cache"))
	require.Empty(t, field(path+"s", "flags"))
}
