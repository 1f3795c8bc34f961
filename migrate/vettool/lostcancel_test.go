package main

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

func TestLostCancel(t *testing.T) {
	if testing.Short() {
		t.Skip("it type-checks the standard library")
	}
	analysistest.Run(t, analysistest.TestData(), lostCancel, "lost")
}
