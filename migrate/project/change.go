package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
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
// Load, or cannot be written. In that case Fix restores the files that it has written.
func (p *Project) Fix() error {
	fileModes := make([]os.FileMode, len(p.changes))
	for i, c := range p.changes {
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
		if tempFiles[i], err = writeTempFile(c.Name, c.New, fileModes[i]); err != nil {
			return err
		}
	}
	for i, c := range p.changes {
		err := renameFile(tempFiles[i], c.Name)
		if err == nil {
			tempFiles[i] = ""
			continue
		}
		for j, c := range p.changes[:i] {
			restored, restoreErr := writeTempFile(c.Name, c.Old, fileModes[j])
			if restoreErr == nil {
				restoreErr = renameFile(restored, c.Name)
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
var renameFile = func(from, to string) error {
	// If to is a symbolic link, replace the file that it links to.
	to, err := filepath.EvalSymlinks(to)
	if err != nil {
		return err
	}
	return os.Rename(from, to)
}

// writeTempFile writes a temporary file into the folder of the file name. It returns the
// temporary file's name.
func writeTempFile(name string, text []byte, mode os.FileMode) (string, error) {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
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
