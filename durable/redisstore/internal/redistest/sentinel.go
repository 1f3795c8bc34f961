package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// StartSentinel starts a Sentinel that monitors the master under the name "it". It
// returns the Sentinel's address when the Sentinel answers.
func StartSentinel(tb testing.TB, master *Server) (addr string) {
	tb.Helper()
	// Another program may take the port first: then try another port.
	for range 4 {
		if addr, ok := trySentinel(tb, master); ok {
			return addr
		}
	}
	tb.Fatal("redistest: four Sentinels have ended at once")
	return ""
}

// trySentinel starts a Sentinel on a free port. ok is false if the Sentinel has ended.
func trySentinel(tb testing.TB, master *Server) (addr string, ok bool) {
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
	ended, stop := context.WithCancel(context.Background())
	go func() {
		_ = cmd.Wait()
		stop()
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended.Done()
	})
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	c := redis.NewSentinelClient(&redis.Options{Addr: addr})
	defer c.Close()
	return addr, pollUntil(ended, func() bool { return c.Ping(ended).Err() == nil }) == nil && ended.Err() == nil
}
