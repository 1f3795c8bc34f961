package pgstore

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store/storetest"
)

// Tables that the first program with these migrations wrote work with this one. The program
// sqlitestore/testdata/generate.go made the dump.
func TestMigrate_TablesOfFirstRelease(t *testing.T) {
	server := sharedServer(t)
	_, err := newPool(t, server.URL("postgres")).Exec(t.Context(), "CREATE DATABASE first_release")
	require.NoError(t, err)
	dump, err := os.ReadFile("testdata/schema1.sql")
	require.NoError(t, err)
	var statements strings.Builder
	for line := range strings.Lines(string(dump)) {
		if !strings.HasPrefix(line, `\`) { // a command of psql
			statements.WriteString(line)
		}
	}
	loading := newPool(t, server.URL("first_release"))
	_, err = loading.Exec(t.Context(), statements.String())
	require.NoError(t, err)
	loading.Close() // the dump has changed its connection's settings

	pool := newPool(t, server.URL("first_release"))
	_, err = Migrate(t.Context(), pool)
	require.NoError(t, err)
	s := New(pool)
	defer s.Close()
	storetest.RunUpgraded(t, s, "testdata/schema1.gob")
}
