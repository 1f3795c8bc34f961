package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/sqlitestore"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func openFile(_ testing.TB, dir string) (side, error) {
	st, err := sqlitestore.Open(filepath.Join(dir, "tasks.db"), sqlitestore.WithLogger(quiet()))
	if err != nil {
		return nil, err
	}
	return newTickless(st, st.Close), nil
}

var errNoServer = errors.New("there is no redis-server: see scripts/need-redis")

// openRedis starts a server that syncs its log once a second, the default.
func openRedis(_ testing.TB, dir string) (side, error) {
	path, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server"))
	if err != nil {
		return nil, errNoServer
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	st := redisstore.New(rdb, redisstore.WithLogger(quiet()))
	stop := func() error {
		err := errors.Join(st.Close(), rdb.Close(), cmd.Process.Kill())
		_ = cmd.Wait() // the error says that the process was killed
		return err
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if err = rdb.Ping(context.Background()).Err(); err == nil {
			return newTickless(st, stop), nil
		}
		if time.Since(begin) > 10*time.Second {
			return nil, errors.Join(fmt.Errorf("the server does not answer: %w", err), stop())
		}
	}
}
