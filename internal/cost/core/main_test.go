package main

import (
	"testing"

	"github.com/tickless/tickless/internal/cost"
)

func TestCosts(t *testing.T) { cost.Test(t, ops, "github.com/tickless/tickless/...") }
