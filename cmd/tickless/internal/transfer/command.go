// Package transfer contains the commands export and import.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

// NewExport returns the command that writes the tasks of a store to a file.
func NewExport() *cobra.Command {
	var location stores.Location
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Writes all tasks of a store to a file",
		Long: `Writes all tasks of a store to a file, for tickless import: pending and repeating
tasks with their attempts, and dead letters. The store does not change. Stop its
workers and clients first; docs/durable.md says how to move a queue and describes
the file format. Damaged tasks are skipped and named, and the exit code is 1.`,
		Example: `  tickless export --file tasks.db tasks.jsonl
  tickless export --redis redis://localhost:6379 - | zstd > tasks.jsonl.zst`,
		Args: cli.One("file"),
		RunE: func(cmd *cobra.Command, args []string) error { return exportStore(cmd, location, args[0]) },
	}
	location.AddFlags(cmd.Flags(), "")
	return cmd
}

// NewImport returns the command that reads tasks from a file into a store.
func NewImport() *cobra.Command {
	var location stores.Location
	var resume bool
	var renames map[string]string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Reads the tasks of a file into a store",
		Long: `Reads the tasks of a file that tickless export wrote. The store may have any type
and any number of shards. Tasks that the store already has do not change. The
import pauses the store, so that no task runs before all are imported; --resume
resumes it at the end. After an error, run the import again.`,
		Example: `  tickless import --file new.db tasks.jsonl
  tickless import --file new.db --rename-handler mail=letter tasks.jsonl
  zstd -dc tasks.jsonl.zst | tickless import --redis redis://localhost:6379 --resume -`,
		Args: cli.One("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return importIntoStore(cmd, location, args[0], resume, renames)
		},
	}
	location.AddFlags(cmd.Flags(), "")
	cmd.Flags().BoolVar(&resume, "resume", false, "resume the store after the import, so that workers run the tasks")
	cmd.Flags().StringToStringVar(&renames, "rename-handler", nil, "give a handler's tasks to another handler, as OLD=NEW; may be repeated")
	return cmd
}

func exportStore(cmd *cobra.Command, location stores.Location, name string) (err error) {
	st, closeStore, err := location.CheckAndOpen(cmd.Context(), cmd.ErrOrStderr(), true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	n, err := 0, error(nil)
	if name == "-" {
		n, err = durable.Export(cmd.Context(), cmd.OutOrStdout(), st)
	} else {
		n, err = exportToFile(cmd.Context(), name, st)
	}
	if isComplete(err) {
		fmt.Fprintf(cmd.ErrOrStderr(), "exported %s tasks\n", figures.GroupDigits(int64(n)))
	}
	return err
}

// isComplete reports whether an export has written a file that can be imported.
func isComplete(err error) bool {
	return err == nil || errors.Is(err, durable.ErrChanged) || errors.Is(err, durable.ErrSkipped)
}

// exportToFile writes a new file. The file gets its name when it is complete.
func exportToFile(ctx context.Context, name string, st store.Store) (int, error) {
	if _, err := os.Lstat(name); err == nil {
		return 0, fmt.Errorf("%s already exists", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // does nothing after the rename
	n, err := durable.Export(ctx, f, st)
	if !isComplete(err) {
		return n, errors.Join(err, f.Close())
	}
	if err2 := errors.Join(f.Sync(), f.Close()); err2 != nil {
		return n, err2
	}
	return n, errors.Join(os.Rename(f.Name(), name), err)
}

func importIntoStore(cmd *cobra.Command, location stores.Location, name string, resume bool, renames map[string]string) (err error) {
	var opts []durable.ImportOption
	for from, to := range renames {
		if !store.IsName(from) || !store.IsName(to) {
			return cli.UsageError{Err: fmt.Errorf("--rename-handler: %q=%q is not OLD=NEW", from, to)}
		}
		opts = append(opts, durable.RenameHandler(from, to))
	}
	var in io.Reader = cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	isNewFile := location.IsNewFile()
	st, closeStore, err := location.CheckAndOpen(cmd.Context(), cmd.ErrOrStderr(), false)
	if err != nil {
		return err
	}
	var importCounts durable.Copied
	defer func() {
		err = errors.Join(err, closeStore())
		if err != nil && isNewFile && importCounts.Added == 0 {
			err = errors.Join(err, os.Remove(location.File)) // the new store has no tasks
		}
	}()
	importCounts, err = durable.Import(cmd.Context(), st, in, opts...)
	if importCounts.Added+importCounts.Kept > 0 || err == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "imported %s tasks, kept %s that already existed\n",
			figures.GroupDigits(int64(importCounts.Added)), figures.GroupDigits(int64(importCounts.Kept)))
	}
	if err != nil {
		return err
	}
	if resume {
		return durable.New(st).Resume(cmd.Context())
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "The store is paused. When the old store is no longer in use, run this command again with --resume. If the old store was used after the export, export again and import into an empty store.")
	return nil
}
