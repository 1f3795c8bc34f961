package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// If REMINDERS_TEST is set, the test binary is the command.
func TestMain(m *testing.M) {
	if os.Getenv("REMINDERS_TEST") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start starts the command, and returns it with the first line that it prints.
func start(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "REMINDERS_TEST=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, line
}

func TestReminder_SurvivesKill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reminders.db")
	cmd, line := start(t, "-file", file, "-in", "2s", "tea is ready")
	require.Equal(t, "scheduled: tea is ready\n", line)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), "it was killed")

	cmd, line = start(t, "-file", file)
	require.Equal(t, "reminder: tea is ready\n", line)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
}
