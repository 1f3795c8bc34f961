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
	"slices"
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
// Load, cannot be written, or is a link out of the module. In that case Fix restores the
// files that it has written.
func (p *Project) Fix() error {
	fileModes := make([]os.FileMode, len(p.changes))
	files := make([]string, len(p.changes)) // what the names stand for
	for i, c := range p.changes {
		var err error
		if files[i], err = p.fileInModule(c.Name); err != nil {
			return err
		}
		current, err := os.ReadFile(c.Name)
		if err != nil {
			return err
		}
		if !bytes.Equal(current, c.Old) {
			return fmt.Errorf("%s has changed since it was loaded", c.Name)
		}
		info, err := os.Stat(c.Name)
		if err != nil {
			return err
		}
		fileModes[i] = info.Mode().Perm()
	}
	// Write the new contents beside the old files first. After that only renames remain,
	// which need no disk space.
	tempFiles := make([]string, len(p.changes))
	defer func() {
		for _, name := range tempFiles {
			if name != "" {
				os.Remove(name) // if this fails, the extra file does no harm
			}
		}
	}()
	for i, c := range p.changes {
		var err error
		if tempFiles[i], err = writeTempFile(files[i], c.New, fileModes[i]); err != nil {
			return err
		}
	}
	for i := range p.changes {
		err := renameFile(tempFiles[i], files[i])
		if err == nil {
			tempFiles[i] = ""
			continue
		}
		for j, c := range p.changes[:i] {
			restored, restoreErr := writeTempFile(files[j], c.Old, fileModes[j])
			if restoreErr == nil {
				restoreErr = renameFile(restored, files[j])
			}
			if restoreErr != nil {
				err = errors.Join(err, fmt.Errorf("cannot restore %s: %w", c.Name, restoreErr))
			}
		}
		return err
	}
	return nil
}

// renameFile is a variable so that tests can replace it.
var renameFile = os.Rename

// fileInModule returns the file that a name stands for: name itself, or if it is a symbolic
// link, the file that it links to. It returns an error if that is not in the module.
func (p *Project) fileInModule(name string) (string, error) {
	file, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	root, err := filepath.EvalSymlinks(p.Dir)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, file)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s is a link to %s, outside the module", name, file)
	}
	for dir := filepath.Dir(file); dir != root; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || filepath.Base(dir) == "vendor" {
			return "", fmt.Errorf("%s is a link to %s, which belongs to another module", name, file)
		}
	}
	return file, nil
}

// fixedFiles returns the files that must not change, because they are links out of the
// module, with the reason.
func (p *Project) fixedFiles(names []string) map[string]string {
	fixed := make(map[string]string)
	for _, name := range names {
		if _, err := p.fileInModule(name); err != nil {
			fixed[name] = "the file is a link out of the module"
		}
	}
	return fixed
}

// Uncommitted returns the files of the module with changes that git has not recorded, and
// files to rewrite that git ignores: Fix cannot be undone for these. It returns none if the
// module is not in a git repository.
func (p *Project) Uncommitted(ctx context.Context) ([]string, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-c", "core.fsmonitor=false", "-C", p.Dir}, args...)...)
		out, err := cmd.Output()
		return string(out), err
	}
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, ctx.Err() // there is no repository, or no git
	}
	// In the porcelain format, paths are relative to the repository's root.
	status, err := git("status", "--porcelain", "-z", "--ignored", "--", ".")
	if err != nil {
		return nil, fmt.Errorf("git status: %w", err)
	}
	var files []string
	entries := strings.Split(status, "\x00")
	for i := 0; i < len(entries); i++ {
		if len(entries[i]) < 4 {
			continue // the empty text at the end
		}
		code, path := entries[i][:2], entries[i][3:]
		if strings.ContainsAny(code, "RC") {
			i++ // the next entry is the old name
		}
		name := filepath.Join(strings.TrimSuffix(root, "\n"), filepath.FromSlash(path))
		if code != "!!" || p.changesIn(name) {
			files = append(files, path)
		}
	}
	return files, nil
}

// changesIn reports whether a file to rewrite is name, or is in the folder name.
func (p *Project) changesIn(name string) bool {
	return slices.ContainsFunc(p.changes, func(c Change) bool {
		file, err := p.fileInModule(c.Name)
		return err == nil && (file == name || strings.HasPrefix(file, name+string(filepath.Separator)))
	})
}

// writeTempFile writes a temporary file into the folder of the file name. It returns the
// temporary file's name.
func writeTempFile(name string, text []byte, mode os.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".tickless-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// relativePath returns name relative to the module's folder, or name if it is outside.
func (p *Project) relativePath(name string) string {
	if rel, err := filepath.Rel(p.Dir, name); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return name
}
