package main

import (
	"testing"

	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, newCommand) }

// The tests of each command are in its package; those of the whole program are
// here.

func TestProgram_Help(t *testing.T) {
	clitest.CheckHelp(t, "", "purgatory", "idle", "scale", "callbacks", "--count")
}

func TestProgram_CalledWrongly(t *testing.T) {
	clitest.CheckCalledWrongly(t, "", []clitest.WrongCall{
		{Args: []string{"bogus"}, Want: `unknown command "bogus"`},
		{Args: []string{"bogus", "idle"}, Want: `unknown command "bogus"`},
		{Args: []string{"scale", "idle"}, Want: `"idle"`},
		{Args: []string{"idle", "--counts", "1k"}, Want: "--counts"},
	})
}
