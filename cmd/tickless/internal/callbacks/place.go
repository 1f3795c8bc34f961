package callbacks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/cmd/tickless/internal/child"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
)

// prepare makes the place that the flags say. It returns what it is, for people, and what
// takes it away again: all that this program has made.
func prepare(ctx context.Context, c config, name string) (p stores.Place, what string, remove func(), err error) {
	switch {
	case c.Redis == startServer:
		url, stop, err := startRedis(ctx)
		if err != nil {
			return stores.Place{}, "", nil, err
		}
		return stores.Place{URL: url, Name: name}, "Redis: a server of its own, " + strings.TrimPrefix(url, "redis://"), stop, nil
	case c.Redis == inProcess:
		m := miniredis.NewMiniRedis()
		if err := m.StartAddr("127.0.0.1:0"); err != nil {
			return stores.Place{}, "", nil, fmt.Errorf("the server in this process: %w", err)
		}
		return stores.Place{URL: "redis://" + m.Addr(), Name: name}, "Redis: miniredis, in this process", m.Close, nil
	case c.Redis != "":
		p := stores.Place{URL: c.Redis, Cluster: c.Cluster, Name: name}
		if err := reach(ctx, p); err != nil {
			return stores.Place{}, "", nil, err
		}
		return p, "Redis: " + stores.Shown(c.Redis), func() { removeQueue(p) }, nil
	case c.Dir != "":
		if err := empty(c.Dir); err != nil {
			return stores.Place{}, "", nil, err
		}
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return stores.Place{}, "", nil, err
		}
		return stores.Place{Dir: c.Dir}, "directory " + c.Dir, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "tickless-callbacks-")
	if err != nil {
		return stores.Place{}, "", nil, err
	}
	return stores.Place{Dir: dir}, "directory " + dir + ", removed at the end", func() { _ = os.RemoveAll(dir) }, nil
}

// empty returns an error if the directory is there and has something in it: what is not
// this program's is not touched.
func empty(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(list) > 0:
		return fmt.Errorf("the directory %s is not empty: name one that is, or that is not there", dir)
	}
	return nil
}

// reach returns an error that says what to do if the server is not there, or not of the
// kind that it is said to be.
func reach(ctx context.Context, p stores.Place) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, err := p.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	info, err := client.Info(ctx).Result()
	if err != nil {
		alone := stores.Place{URL: p.URL}
		if one, err2 := alone.Client(); p.Cluster && err2 == nil {
			defer one.Close()
			if one.Ping(ctx).Err() == nil {
				return fmt.Errorf("the server at %s is not part of a cluster that works; without --cluster it may be used alone: %w", stores.Shown(p.URL), err)
			}
		}
		return fmt.Errorf("no Redis server can be reached at %s: %w", stores.Shown(p.URL), err)
	}
	if !p.Cluster && strings.Contains(info, "cluster_enabled:1") {
		return fmt.Errorf("the server at %s is part of a cluster: use --cluster", stores.Shown(p.URL))
	}
	return nil
}

// removeQueue removes the queue from a server that stays.
func removeQueue(p stores.Place) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	each := func(ctx context.Context, node *redis.Client) error {
		keys := node.Scan(ctx, 0, "{"+p.Name+":*", 1000).Iterator()
		for keys.Next(ctx) {
			_ = node.Unlink(ctx, keys.Val()).Err()
		}
		return keys.Err()
	}
	client, err := p.Client()
	if err != nil {
		return
	}
	defer client.Close()
	switch c := client.(type) {
	case *redis.ClusterClient:
		_ = c.ForEachMaster(ctx, each)
	case *redis.Client:
		_ = each(ctx, c)
	}
}

// startRedis starts a server with its log on, in a directory that goes with it.
func startRedis(ctx context.Context) (url string, stop func(), err error) {
	name := "redis-server"
	if path := os.Getenv("REDIS_SERVER"); path != "" {
		name = path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", nil, fmt.Errorf("there is no %s to start: install Redis or Valkey, name one that runs with --redis redis://HOST:PORT, or use --redis %s", name, inProcess)
	}
	dir, err := os.MkdirTemp("", "tickless-redis-")
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	for range 3 {
		url, stop, err = startServerIn(ctx, path, dir)
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return url, stop, err
}

// errEnded is that of a server that has ended by itself, as it does where somebody else
// has got its port meanwhile.
var errEnded = errors.New("redis-server has ended")

// startServerIn starts the server at path, whose files are in dir. stop removes dir.
func startServerIn(ctx context.Context, path, dir string) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes",
		"--maxmemory-policy", "noeviction")
	cmd.SysProcAttr = child.OwnGroup() // the workers need it until they have ended
	tie(cmd)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	kill := func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	url = "redis://" + addr
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := reach(ctx, stores.Place{URL: url})
		select {
		case <-ended: // whoever answers
			return "", nil, errEnded
		default:
		}
		if err == nil {
			return url, func() { kill(); _ = os.RemoveAll(dir) }, nil
		}
		if ctx.Err() != nil || time.Since(begin) > 30*time.Second {
			kill()
			return "", nil, err
		}
	}
}
