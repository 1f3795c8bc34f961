package project

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// A Change is what becomes of a file.
type Change struct {
	Name     string // the file's, as an absolute path
	Old, New []byte
	// Lines is how many of the new lines are not old ones.
	Lines int

	diff string
}

// prepare works out what becomes of the files.
func (p *Project) prepare() error {
	for _, f := range p.Report.Files {
		src, err := os.ReadFile(f.Name)
		if err != nil {
			return err
		}
		out, err := f.Apply(src)
		if err != nil {
			return err
		}
		if bytes.Equal(src, out) {
			continue
		}
		c := Change{Name: f.Name, Old: src, New: out}
		name := filepath.ToSlash(p.relative(f.Name))
		c.diff = udiff.Unified("a/"+name, "b/"+name, string(src), string(out))
		for line := range strings.Lines(c.diff) {
			if strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++ ") {
				c.Lines++
			}
		}
		p.changes = append(p.changes, c)
	}
	return nil
}

// Changes returns what becomes of the files, by name.
func (p *Project) Changes() []Change { return p.changes }

// WriteDiff writes the changes as a unified diff, with names below the module's
// folder.
func (p *Project) WriteDiff(w io.Writer) error {
	for _, c := range p.changes {
		if _, err := io.WriteString(w, c.diff); err != nil {
			return err
		}
	}
	return nil
}

// Fix writes the files. It stops at the first that cannot be written, or that was
// changed since it was loaded.
func (p *Project) Fix() error {
	for _, c := range p.changes {
		now, err := os.ReadFile(c.Name)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, c.Old) {
			return fmt.Errorf("%s was changed meanwhile", c.Name)
		}
		info, err := os.Stat(c.Name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.Name, c.New, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// relative returns a file's name below the module's folder.
func (p *Project) relative(name string) string {
	if rel, err := filepath.Rel(p.Dir, name); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return name
}
