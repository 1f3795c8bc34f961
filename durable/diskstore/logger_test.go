package diskstore

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Pebble says again and again is logged a few times, without the stacks.
func TestLogger(t *testing.T) {
	var out bytes.Buffer
	l := &logger{log: slog.New(slog.NewTextHandler(&out, nil))}
	for range 1000 {
		l.Errorf("background error: %s", errors.New("no luck\n(1) attached stack trace"))
	}
	require.Equal(t, linesPerMinute, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), "no luck")
	require.NotContains(t, out.String(), "stack")
}
