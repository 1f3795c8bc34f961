package redisstore

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// Redis orders a ZSET by bytes, but Lua compares strings by the server's locale. Pages
// must still contain each dead letter once.
func TestDeadLetters_UnderAnotherLocale(t *testing.T) {
	ctx := context.Background()
	// Compile a locale of the C library into a temporary folder.
	dir := t.TempDir()
	out, err := exec.Command("localedef", "-i", "en_US", "-f", "UTF-8", filepath.Join(dir, "en_US.UTF-8")).CombinedOutput()
	if err != nil {
		t.Skipf("cannot compile the locale en_US; install localedef and its sources (Debian's package locales): %v\n%s", err, out)
	}
	t.Setenv("LOCPATH", dir)
	t.Setenv("LC_ALL", "en_US.UTF-8")
	s := redistest.Start(t)
	r := s.Client()
	defer r.Close()
	before, err := r.Eval(ctx, "return 'a' < 'B' and 'é' < 'f'", nil).Bool()
	require.NoError(t, err)
	require.True(t, before, "the server does not compare by the locale")
	c := newClient(r, WithShards(1))
	_, err = c.Check(ctx)
	require.NoError(t, err)
	// Most pairs of these names are ordered differently by bytes and by the locale.
	var want []string
	for i := range 400 {
		id := string([]rune("aBcDeéF_-. zÄß")[i%14])
		if i%3 == 0 {
			id += "A"
		}
		want = append(want, fmt.Sprint(id, i))
	}
	slices.Sort(want)
	for _, id := range want {
		record := encodeRecord(&store.Task{ID: id, Handler: "h", Record: []byte("\x01123456\x00")}, "0000000000000001") + "0000000000000002"
		require.NoError(t, r.HSet(ctx, c.key(id, "task"), id, record).Err())
		require.NoError(t, r.HSet(ctx, c.key(id, "run"), id, "0 1 0 1700000000000000 - - 1:h").Err())
		require.NoError(t, r.ZAdd(ctx, c.key(id, "dead"), redis.Z{Score: 1_700_000_000_000_000, Member: id}).Err())
	}
	var got []string
	for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
		require.NoError(t, err)
		got = append(got, d.ID)
	}
	require.Equal(t, want, got)
}
