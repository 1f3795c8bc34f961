package rewrite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/migrate"
	"github.com/tickless/tickless/migrate/project"
)

// flags are the flags of the migrate command.
type flags struct {
	dir        string
	asDiff     bool
	writeFiles bool
	allowDirty bool
	asJSON     bool
	buildTags  string

	migrate.Options
}

// NewCommand returns the command that rewrites the timers of a module.
func NewCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "migrate [flags] [packages]",
		Short: "Moves a module's timers and contexts from package time to this library",
		Long: `Analyzes packages of a module, with their tests, and lists the calls that start
timers in three groups: calls that are worth rewriting, calls that can be
rewritten but are not worth it, and calls that cannot be rewritten, with the
reason. A field or a hook and all its uses change together or not at all. Timers
that other packages may use stay as they are. Name packages as for go build; the
default is the package in the current folder.

Files change only with --fix, and only if git has recorded all changes of the
module. The module then requires the library: go get github.com/tickless/tickless.

The exit code is 0 if no calls remain to be rewritten, 3 if some do, 1 after an
error and 2 for wrong arguments.`,
		Example: `  tickless migrate ./...                  which calls can be rewritten, and which are worth it
  tickless migrate --diff ./...           what would change
  tickless migrate --fix ./...            rewrite
  tickless migrate --fix --all ./...      rewrite also what is not worth it
  tickless migrate --json ./...           the report for a program to read`,
		RunE: func(cmd *cobra.Command, patterns []string) error {
			if err := f.validate(); err != nil {
				return cli.UsageError{Err: err}
			}
			return migrateModule(cmd, f, patterns)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.writeFiles, "fix", false, "rewrite the files")
	flags.BoolVar(&f.asDiff, "diff", false, "print the changes as a diff instead of the report")
	flags.BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	flags.BoolVar(&f.allowDirty, "allow-dirty", false, "with --fix: rewrite even if the module has changes that git has not recorded")
	flags.BoolVar(&f.All, "all", false, "calls that are not worth it too; without it, only those that share a type with others")
	flags.BoolVar(&f.Tests, "tests", false, "all calls in tests too; without it, only those that share a type with other code")
	flags.StringVar(&f.buildTags, "tags", "", "build tags, separated by commas")
	flags.StringVarP(&f.dir, "chdir", "C", "", "the folder in which to look for the packages")
	return cmd
}

func (f *flags) validate() error {
	if f.asDiff && f.writeFiles {
		return errors.New("give either --diff or --fix")
	}
	if f.allowDirty && !f.writeFiles {
		return errors.New("--allow-dirty is for --fix")
	}
	if f.asDiff && f.asJSON {
		return errors.New("give either --diff or --json")
	}
	return nil
}

func migrateModule(cmd *cobra.Command, f flags, patterns []string) error {
	p, err := project.Load(cmd.Context(), project.Config{Dir: f.dir, Patterns: patterns, Tags: f.buildTags, Options: f.Options})
	if cmd.Context().Err() != nil {
		return cli.ErrInterrupted // no file has been written yet
	}
	if err != nil {
		return err
	}
	if f.asDiff || f.asJSON {
		for _, w := range p.Warnings {
			fmt.Fprintln(cmd.ErrOrStderr(), "tickless: "+w)
		}
	}
	if f.writeFiles {
		if err := fix(cmd.Context(), p, f.allowDirty); err != nil {
			return err
		}
	}
	stdout := cmd.OutOrStdout()
	switch {
	case f.asDiff:
		err = p.WriteDiff(stdout)
	case f.asJSON:
		err = writeJSON(stdout, p)
	default:
		err = p.WriteReport(stdout)
	}
	if err != nil {
		return err
	}
	if len(p.Changes()) == 0 {
		return nil
	}
	if !f.writeFiles {
		return cli.ExitCode(cli.ExitPending)
	}
	if !f.asJSON {
		fileNoun := "files"
		if len(p.Changes()) == 1 {
			fileNoun = "file"
		}
		fmt.Fprintf(stdout, "Rewrote %d %s.\n", len(p.Changes()), fileNoun)
		fmt.Fprintln(stdout, "Next, unless go.mod requires it: go get github.com/tickless/tickless")
		if _, err := os.Stat(filepath.Join(p.Dir, "vendor", "modules.txt")); err == nil {
			fmt.Fprintln(stdout, "Then: go mod vendor")
		}
	}
	return nil
}

// fix rewrites the files. Unless allowDirty is true, it refuses if git cannot undo that.
func fix(ctx context.Context, p *project.Project, allowDirty bool) error {
	if !allowDirty && len(p.Changes()) > 0 {
		files, err := p.Uncommitted(ctx)
		if err != nil {
			return err
		}
		if n := len(files); n > 0 {
			text := strings.Join(files[:min(n, 3)], ", ")
			if n > 3 {
				text += fmt.Sprintf(" and %d more", n-3)
			}
			return fmt.Errorf("git has not recorded all changes of the module (%s): commit them, or use --allow-dirty", text)
		}
	}
	return p.Fix()
}

// writeJSON prints the counts and the call sites as JSON.
func writeJSON(w io.Writer, p *project.Project) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Module string         `json:"module"`
		Counts project.Counts `json:"counts"`
		Sites  []migrate.Site `json:"sites"`
	}{p.Module, p.Counts(), p.Report.Sites})
}
