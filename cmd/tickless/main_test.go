package main

import (
	"testing"

	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, newCommand) }

// The tests of each command are in the command's package. The tests here are for the
// whole program.

func TestProgram_Help(t *testing.T) {
	clitest.CheckHelp(t, "", "scale", "migrate", "tasks", "export", "import", "--count")
}

func TestProgram_CalledWrongly(t *testing.T) {
	clitest.CheckCalledWrongly(t, "", []clitest.WrongCall{
		{Args: []string{"bogus"}, Want: `unknown command "bogus"`},
		{Args: []string{"bogus", "scale"}, Want: `unknown command "bogus"`},
		{Args: []string{"scale", "bogus"}, Want: `"bogus"`},
	})
}
