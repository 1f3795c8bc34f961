package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// A Change is a file with its old and new contents.
type Change struct {
	Name     string // absolute path of the file
	Old, New []byte
	// Lines is the number of added or changed lines.
	Lines int

	diff string // a unified diff
}

// computeChanges sets p.changes from the report.
func (p *Project) computeChanges() error {
	for _, f := range p.Report.Files {
		src, err := p.readSource(f.Name)
		if err != nil {
			return err
		}
		edited, err := f.Apply(src)
		if err != nil {
			return err
		}
		if bytes.Equal(src, edited) {
			continue
		}
		c := Change{Name: f.Name, Old: src, New: edited}
		relPath := filepath.ToSlash(p.relativePath(f.Name))
		c.diff, c.Lines = fixHunkHeaders(udiff.Unified("a/"+relPath, "b/"+relPath, string(src), string(edited)))
		p.changes = append(p.changes, c)
	}
	return nil
}

var hunkHeader = regexp.MustCompile(`^@@ -(\d+)((?:,\d+)?) \+\d+((?:,\d+)?) @@`)

// fixHunkHeaders corrects line numbers in the hunk headers of a diff, because udiff
// counts them wrongly. It also returns how many lines the diff adds.
func fixHunkHeaders(diff string) (string, int) {
	var out strings.Builder
	added, removed, insideHunk := 0, 0, false
	for line := range strings.Lines(diff) {
		if m := hunkHeader.FindStringSubmatch(line); m != nil {
			insideHunk = true
			old, _ := strconv.Atoi(m[1]) // cannot fail: m[1] is digits
			line = fmt.Sprintf("@@ -%d%s +%d%s @@\n", old, m[2], old+added-removed, m[3])
		}
		switch {
		case insideHunk && line[0] == '+':
			added++
		case insideHunk && line[0] == '-':
			removed++
		}
		out.WriteString(line)
	}
	return out.String(), added
}

// Changes returns the changed files, sorted by name.
func (p *Project) Changes() []Change { return p.changes }

// WriteDiff writes the changes as a unified diff. File names are relative to the module's
// folder.
func (p *Project) WriteDiff(w io.Writer) error {
	for _, c := range p.changes {
		if _, err := io.WriteString(w, c.diff); err != nil {
			return err
		}
	}
	return nil
}

// Fix writes all changed files, or none. It returns an error if a file has changed since
// Load, cannot be written, or has become a link. In that case Fix restores the files that it
// has written.
func (p *Project) Fix() error {
	for _, c := range p.changes {
		current, err := os.ReadFile(c.Name)
		switch {
		case err != nil:
			return err
		case p.isLink(c.Name):
			return fmt.Errorf("%s has become a link", c.Name)
		case !bytes.Equal(current, c.Old):
			return fmt.Errorf("%s has changed since it was loaded", c.Name)
		}
	}
	for i, c := range p.changes {
		err := replaceFile(c.Name, c.New)
		if err == nil {
			continue
		}
		for _, c := range p.changes[:i] {
			if restoreErr := replaceFile(c.Name, c.Old); restoreErr != nil {
				err = errors.Join(err, fmt.Errorf("cannot restore %s: %w", c.Name, restoreErr))
			}
		}
		return err
	}
	return nil
}

// replaceFile writes a file. If it fails, the file is as before.
func replaceFile(name string, text []byte) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".tickless-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing after the rename
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Close()); err != nil {
		return err
	}
	return renameFile(f.Name(), name)
}

// renameFile is a variable so that tests can replace it.
var renameFile = os.Rename

// isLink reports whether the name of a file leads through a symbolic link below the module's
// folder.
func (p *Project) isLink(name string) bool {
	file, err := filepath.EvalSymlinks(name)
	root, rootErr := filepath.EvalSymlinks(p.Dir)
	return err != nil || rootErr != nil || file != filepath.Join(root, p.relativePath(name))
}

// Uncommitted returns the files of the module with changes that git has not recorded, as
// `git status` names them. It returns none if the module is not in a git repository.
func (p *Project) Uncommitted(ctx context.Context) ([]string, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-c", "core.fsmonitor=false", "-C", p.Dir}, args...)...)
		out, err := cmd.Output()
		return string(out), err
	}
	if _, err := git("rev-parse"); err != nil {
		return nil, ctx.Err() // there is no repository, or no git
	}
	status, err := git("status", "--porcelain", "--", ".")
	if err != nil {
		return nil, fmt.Errorf("git status: %w", err)
	}
	var files []string
	for line := range strings.Lines(status) {
		files = append(files, strings.TrimSpace(line[3:])) // behind two letters and a space
	}
	return files, nil
}

// relativePath returns name relative to the module's folder, or name if it is outside.
func (p *Project) relativePath(name string) string {
	if rel, err := filepath.Rel(p.Dir, name); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return name
}
