package diskstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/diskstore"
)

// filled makes a store in a directory that has tables and was closed, and returns the
// script that did it.
func filled(t *testing.T, dir string) *script {
	x := newScript(t)
	x.dir = dir
	s, err := x.open(nil)
	require.NoError(t, err)
	for range 200 {
		require.NoError(t, x.step(s))
	}
	require.NoError(t, s.Close())
	return x
}

// TestDamage flips a bit in, cuts, and deletes the files of a store that was closed. It
// has all, or says that it is damaged: nothing is lost in silence.
func TestDamage(t *testing.T) {
	begins(t)
	cases := 60
	switch {
	case testing.Short():
		cases = 10
	case long():
		cases = 500
	}
	dir := filepath.Join(t.TempDir(), "store")
	x := filled(t, dir)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		if f.Name() != "LOCK" && !strings.HasPrefix(f.Name(), "OPTIONS") {
			names = append(names, f.Name())
		}
	}
	rng := rand.New(rand.NewPCG(3, 3))
	noticed := 0
	for i := range cases {
		name := names[i%len(names)]
		copied := filepath.Join(t.TempDir(), "copy")
		require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
		path := filepath.Join(copied, name)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		what := ""
		switch kind := i / len(names) % 3; {
		case kind == 0 && len(b) > 0:
			at := rng.IntN(len(b))
			what = fmt.Sprintf("%s, of %d bytes, with a bit of byte %d flipped", name, len(b), at)
			b[at] ^= 1 << rng.IntN(8)
			require.NoError(t, os.WriteFile(path, b, 0o600))
		case kind == 1 && len(b) > 0:
			n := rng.IntN(len(b))
			what = fmt.Sprintf("%s, of %d bytes, cut to %d", name, len(b), n)
			require.NoError(t, os.Truncate(path, int64(n)))
		default:
			what = name + " deleted"
			require.NoError(t, os.Remove(path))
		}
		if !x.same(copied, what) {
			noticed++
		}
	}
	note(t, "a file with a bit flipped, cut, or deleted, %d times: %d were errors, and the others did no harm", cases, noticed)
	require.NotZero(t, noticed)
}

// same opens a directory and reports whether it has all that was acknowledged. All else
// must be an error.
func (x *script) same(dir, what string) bool {
	x.t.Helper()
	x.dir = dir
	s, err := x.open(nil)
	if err == nil {
		_, err = s.Verify(x.t.Context())
		if err == nil {
			got, lookErr := x.look(s)
			if err = lookErr; err == nil && !equalStates(got, x.states[x.acked]) {
				x.t.Errorf("%s: there is\n%s\nand should be\n%s", what, got, x.states[x.acked])
			}
		}
		err = errors.Join(err, s.Close())
	}
	if err != nil && !errors.Is(err, diskstore.ErrDamaged) && !errors.Is(err, diskstore.ErrForeign) {
		x.t.Errorf("%s: the error says nothing of damage: %v", what, err)
	}
	return err == nil
}
