package main

import (
	"testing"

	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, newCommand) }

// These tests are for the whole program. Each command has tests in its own package.

func TestProgram_Help(t *testing.T) {
	clitest.CheckHelp(t, "", "scale", "migrate", "tasks", "export", "import")
}

func TestProgram_CalledWrongly(t *testing.T) {
	clitest.CheckWrongCalls(t, "", []clitest.WrongCall{
		{Args: []string{"bogus"}, WantError: `unknown command "bogus"`},
		{Args: []string{"bogus", "scale"}, WantError: `unknown command "bogus"`},
		{Args: []string{"completion", "bogus"}, WantError: `unknown command "bogus"`},
		{Args: []string{"scale", "bogus"}, WantError: `"bogus"`},
	})
}
