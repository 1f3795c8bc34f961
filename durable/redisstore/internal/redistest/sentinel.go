package redistest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// StartSentinel starts a Sentinel that monitors the master under the name "it". It
// returns the Sentinel's address.
func StartSentinel(tb testing.TB, master *Server) (addr string) {
	tb.Helper()
	port, dir := FindFreePort(tb), tempDir(tb)
	confPath := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(confPath, fmt.Appendf(nil, `
port %d
bind 127.0.0.1
dir %s
sentinel monitor it 127.0.0.1 %d 1
sentinel down-after-milliseconds it 1000
sentinel failover-timeout it 5000
`, port, dir, master.Port), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(serverPath(tb), confPath, "--sentinel")
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
