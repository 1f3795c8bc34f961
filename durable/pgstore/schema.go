package pgstore

import (
	"context"
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tickless/tickless/durable/store"
)

//go:embed migrations
var migrationFiles embed.FS

// A Migration is one step from a version of the tables to the next.
type Migration struct {
	Version int
	Name    string
	SQL     string
}

// Migrations returns all steps, for people who run migrations themselves. Each step is one
// transaction. The schema must exist before the first. The options must be those of [New].
func Migrations(opts ...Option) []Migration {
	c := newConfig("Migrations", opts)
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		panic(err) // impossible: the files are part of the program
	}
	var steps []Migration
	for i, f := range files {
		text, err := migrationFiles.ReadFile(path.Join("migrations", f.Name()))
		if err != nil {
			panic(err)
		}
		m := Migration{Version: i + 1, Name: strings.TrimSuffix(f.Name(), ".sql"), SQL: c.sql(string(text))}
		if i == 0 {
			m.SQL += c.sql(fmt.Sprintf("INSERT INTO tickless.versions SELECT shard, '', 0, 0, 0, false, '{}' FROM generate_series(0, %d) shard;\n", c.shardCount-1))
		}
		m.SQL += c.sql(fmt.Sprintf("INSERT INTO tickless.migrations (version) VALUES (%d);\n", m.Version))
		steps = append(steps, m)
	}
	return steps
}

// sql returns a statement for the Store's schema, which is called tickless in the source.
func (c *config) sql(statement string) string {
	if c.schema == DefaultSchema {
		return statement
	}
	return strings.ReplaceAll(statement, "tickless.", c.schema+".")
}

// Migrate creates the schema and the tables, or brings them to the version of this program.
// It is safe beside other calls of Migrate and beside running workers, and does nothing if
// all is done. Each step is one transaction. Migrate returns the steps that it has made.
//
// The error wraps [store.ErrSchema] if the tables have a newer version than this program
// knows or another number of shards, and [store.ErrUnfit] if the database is not UTF-8.
func Migrate(ctx context.Context, pool *pgxpool.Pool, opts ...Option) (done []Migration, err error) {
	c := newConfig("Migrate", opts)
	for _, m := range Migrations(opts...) {
		var made bool
		err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('tickless migrate'), hashtext($1))`, c.schema); err != nil {
				return err
			}
			version, err := c.checkTables(ctx, tx)
			if made = version < m.Version; err != nil || !made {
				return err
			}
			var exists bool
			if err := tx.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL`, c.schema).Scan(&exists); err != nil {
				return err
			}
			if !exists {
				if _, err := tx.Exec(ctx, `CREATE SCHEMA `+c.schema); err != nil {
					return err
				}
			}
			_, err = tx.Exec(ctx, m.SQL, pgx.QueryExecModeSimpleProtocol)
			return err
		})
		if err != nil {
			return done, fmt.Errorf("pgstore: Migrate: %s: %w", m.Name, wrapError(err, false))
		}
		if made {
			done = append(done, m)
		}
	}
	return done, nil
}

// checkTables returns the version of the tables, or 0 if there are none. It returns an error if
// this program cannot use the database.
func (c *config) checkTables(ctx context.Context, tx pgx.Tx) (version int, err error) {
	var encoding string
	if err := tx.QueryRow(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
		return 0, err
	}
	if encoding != "UTF8" {
		return 0, fmt.Errorf("the database's encoding must be UTF8, got %s: %w", encoding, store.ErrUnfit)
	}
	var exists bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, c.schema+".migrations").Scan(&exists); err != nil || !exists {
		return 0, err
	}
	var shards int
	if err = tx.QueryRow(ctx, c.sql(`SELECT max(version), (SELECT count(DISTINCT shard) FROM tickless.versions WHERE name = '') FROM tickless.migrations`)).Scan(&version, &shards); err != nil {
		return 0, err
	}
	switch newest := len(Migrations()); {
	case version > newest:
		return version, fmt.Errorf("%w: the tables have version %d, but this program supports versions up to %d", store.ErrSchema, version, newest)
	case shards != c.shardCount:
		return version, fmt.Errorf("%w: the schema %s has %d shards, but WithShards says %d", store.ErrSchema, c.schema, shards, c.shardCount)
	}
	return version, nil
}

// checkSchema returns an error unless the tables have the version of this program.
func (s *Store) checkSchema(ctx context.Context) error {
	if s.schemaChecked.Load() {
		return nil
	}
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		version, err := s.checkTables(ctx, tx)
		if newest := len(Migrations()); err == nil && version < newest {
			err = fmt.Errorf("%w: the tables in the schema %s have version %d (0: there are none), and this program needs %d: run Migrate", store.ErrSchema, s.schema, version, newest)
		}
		return err
	})
	s.schemaChecked.Store(err == nil)
	return wrapError(err, false)
}

// Grants returns the SQL that lets one role use a Store, and another only schedule tasks with
// [Store.ScheduleTx]. The role that runs the migrations must run it. An empty role is left
// out. Grants panics if a role's name contains a quotation mark.
func Grants(worker, producer string, opts ...Option) string {
	c := newConfig("Grants", opts)
	if strings.Contains(worker+producer, `"`) {
		panic(fmt.Sprintf("pgstore: Grants: a role's name must not contain a quotation mark, got %s and %s", worker, producer))
	}
	var b strings.Builder
	grant := func(role, tables, rights string) {
		if role != "" {
			fmt.Fprintf(&b, "GRANT %s ON %s TO \"%s\";\n", rights, strings.ReplaceAll(tables, "tickless.", c.schema+"."), role)
		}
	}
	for _, role := range []string{worker, producer} {
		grant(role, "SCHEMA "+c.schema, "USAGE")
		grant(role, "tickless.inbox", "INSERT")
	}
	grant(worker, "tickless.inbox", "SELECT, DELETE")
	grant(worker, "tickless.tasks", "SELECT, INSERT, UPDATE, DELETE")
	grant(worker, "tickless.versions", "SELECT, INSERT, DELETE")
	grant(worker, "tickless.groups", "SELECT, INSERT, UPDATE, DELETE")
	grant(worker, "tickless.migrations", "SELECT")
	return b.String()
}
