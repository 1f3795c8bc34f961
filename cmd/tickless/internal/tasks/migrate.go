package tasks

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/durable/pgstore"
)

// newMigrateCommand returns the command migrate.
func (c *sharedFlags) newMigrateCommand() *cobra.Command {
	var printSQL bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Creates or updates the tables of a store in PostgreSQL",
		Long: `Creates or updates the tables of a store in PostgreSQL. Workers may run at the same
time. With --print, it only prints the SQL, for people who run migrations themselves:
each step as one transaction.`,
		Args: cli.RefuseArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.location.Postgres == "" {
				return cli.UsageError{Err: errors.New("name the database with --postgres: other stores need no migrate")}
			}
			if err := c.location.Check(); err != nil {
				return err
			}
			opts := c.location.PostgresOptions()
			if printSQL {
				out := cmd.OutOrStdout()
				schema := cmp.Or(c.location.StoreName, pgstore.DefaultSchema)
				fmt.Fprintf(out, "CREATE SCHEMA IF NOT EXISTS %s;\n\n", schema)
				for _, m := range pgstore.Migrations(opts...) {
					fmt.Fprintf(out, "-- %s\nBEGIN;\n%sCOMMIT;\n\n", m.Name, m.SQL)
				}
				fmt.Fprint(out, "-- For a role that uses the store, and one that only schedules tasks in its transactions:\n-- ",
					strings.TrimSuffix(strings.ReplaceAll(pgstore.Grants("worker", "producer", opts...), "\n", "\n-- "), "-- "))
				return nil
			}
			pool, err := c.location.Pool()
			if err != nil {
				return err
			}
			defer pool.Close()
			done, err := pgstore.Migrate(cmd.Context(), pool, opts...)
			for _, m := range done {
				fmt.Fprintln(cmd.OutOrStdout(), m.Name)
			}
			if err == nil && len(done) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to do: the tables have this program's version")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&printSQL, "print", false, "print the SQL")
	return cmd
}
