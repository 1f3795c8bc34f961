package metric

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "größe": "größe", "h\xff": `h\xff`, "h\xfe": `h\xfe`, "h\ufffd": "h\ufffd", "\x80ä\xc3": `\x80ä\xc3`,
	} {
		require.Equal(t, want, Text(s), "%q", s)
	}
}
