package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each listed change can be made, its file exists, and its tests exist. (The command
// itself checks that the tests fail.)
func TestList_ChangesCanBeMade(t *testing.T) {
	t.Run("core", func(t *testing.T) { testList(t, "../..", listPath) })
	t.Run("simulation", func(t *testing.T) { testList(t, "../../durable", "internal/simulation/mutants.txt") })
}

func testList(t *testing.T, dir, path string) {
	t.Chdir(dir)
	mutants, err := readList(path)
	require.NoError(t, err)
	require.Greater(t, len(mutants), 20)
	found, err := findTests()
	require.NoError(t, err)
	for _, m := range mutants {
		text, err := os.ReadFile(m.file)
		require.NoError(t, err)
		changed, err := m.apply(string(text))
		assert.NoError(t, err, "line %d", m.lineNumber)
		assert.NotEqual(t, string(text), changed, "line %d", m.lineNumber)
		_, err = found.packagesOf(m.tests)
		assert.NoError(t, err, "line %d", m.lineNumber)
	}
}

func TestMutant_Apply(t *testing.T) {
	const text = "func f() {\n\ta()\n\tb(1)\n\ta()\n}\n\nfunc (x X) g() {\n\ta()\n}\n"
	for _, c := range []struct {
		m    mutant
		want string
	}{
		{mutant{function: "f", oldText: "a()", newText: "c()"}, "func f() {\n\tc()\n\tb(1)\n\ta()\n}\n\nfunc (x X) g() {\n\ta()\n}\n"},
		{mutant{function: "g", oldText: "a()", newText: "c()"}, "func f() {\n\ta()\n\tb(1)\n\ta()\n}\n\nfunc (x X) g() {\n\tc()\n}\n"},
	} {
		got, err := c.m.apply(text)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := mutant{function: "g", oldText: "b(1)"}.apply(text)
	require.Error(t, err, "the old text is in another function")
}
