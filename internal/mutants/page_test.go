package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each change that the page lists can be made, in a file that is there, and the tests
// beside it exist. That they fail with it is what the command looks at.
func TestPage_ChangesCanBeMade(t *testing.T) {
	t.Chdir("../..")
	mutants, err := readPage("docs/guarantees.md")
	require.NoError(t, err)
	require.Greater(t, len(mutants), 50)
	found, err := findTests()
	require.NoError(t, err)
	for _, m := range mutants {
		text, err := os.ReadFile(m.file)
		require.NoError(t, err)
		changed, err := m.apply(string(text))
		assert.NoError(t, err, "guarantees.md:%d", m.line)
		assert.NotEqual(t, string(text), changed, "guarantees.md:%d", m.line)
		_, err = found.of(m.tests)
		assert.NoError(t, err, "guarantees.md:%d", m.line)
	}
}

func TestMutant_Apply(t *testing.T) {
	const text = "func f() {\n\ta()\n\tb(1)\n\ta()\n}\n\nfunc (x X) g() {\n\ta()\n}\n"
	for _, c := range []struct {
		m    mutant
		want string
	}{
		{mutant{fn: "f", old: "a()", new: "c()"}, "func f() {\n\tc()\n\tb(1)\n\ta()\n}\n\nfunc (x X) g() {\n\ta()\n}\n"},
		{mutant{fn: "f", old: "a()", last: true}, "func f() {\n\ta()\n\tb(1)\n\t\n}\n\nfunc (x X) g() {\n\ta()\n}\n"},
		{mutant{fn: "g", old: "a()", new: "c()"}, "func f() {\n\ta()\n\tb(1)\n\ta()\n}\n\nfunc (x X) g() {\n\tc()\n}\n"},
	} {
		got, err := c.m.apply(text)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := mutant{fn: "g", old: "b(1)"}.apply(text)
	require.Error(t, err, "that is in another function")
}
