//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package diskstore_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
)

// opens returns what a process says first that opens a directory, and ends it.
func opens(t *testing.T, dir string) string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TICKLESS_DISKSTORE_CHILD="+dir, "TICKLESS_DISKSTORE_RUN=0")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Scan()
	_ = cmd.Process.Kill() // it may have ended
	require.Error(t, cmd.Wait())
	return lines.Text()
}

// The lock is kept when the process opens and closes each file of the directory, as one
// that makes a copy of it does.
func TestLock_OutlastsACopy(t *testing.T) {
	begins(t)
	dir := filepath.Join(t.TempDir(), "store")
	s, err := diskstore.Open(dir, silent)
	require.NoError(t, err)
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Contains(t, names, filepath.Join(dir, "LOCK"))
	for _, name := range names {
		_, _ = os.ReadFile(name) // it may be gone
	}
	for range 2 {
		require.Contains(t, opens(t, dir), diskstore.ErrLocked.Error())
		_, err := diskstore.Open(dir, silent) // which closes what it has opened
		require.ErrorIs(t, err, diskstore.ErrLocked)
	}
	_, err = durable.New(s).Schedule(t.Context(), durable.Task{Key: "k", Handler: "h"}, durable.After(0))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, "open", opens(t, dir))
	note(t, "all files of an open store read by its own process: another one is refused the directory as before")
}
