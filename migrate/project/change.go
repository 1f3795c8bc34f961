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
		src, err := p.source(f.Name)
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
		c.diff, c.Lines = renumber(udiff.Unified("a/"+name, "b/"+name, string(src), string(out)))
		p.changes = append(p.changes, c)
	}
	return nil
}

var hunk = regexp.MustCompile(`^@@ -(\d+)((?:,\d+)?) \+\d+((?:,\d+)?) @@`)

// renumber puts the new file's line numbers right in a diff's hunks: udiff does not
// count the lines between two changes of one hunk. It also returns how many lines the
// diff adds.
func renumber(diff string) (string, int) {
	var out strings.Builder
	added, removed, inside := 0, 0, false
	for line := range strings.Lines(diff) {
		if m := hunk.FindStringSubmatch(line); m != nil {
			inside = true
			old, _ := strconv.Atoi(m[1]) // it is digits
			line = fmt.Sprintf("@@ -%d%s +%d%s @@\n", old, m[2], old+added-removed, m[3])
		}
		switch {
		case inside && line[0] == '+':
			added++
		case inside && line[0] == '-':
			removed++
		}
		out.WriteString(line)
	}
	return out.String(), added
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

// Fix writes the files, or none of them: if one was changed since it was loaded, or
// cannot be written. Then those that were written are put back.
func (p *Project) Fix() error {
	modes := make([]os.FileMode, len(p.changes))
	for i, c := range p.changes {
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
		modes[i] = info.Mode().Perm()
	}
	// What takes space is done before the first file is touched.
	written := make([]string, len(p.changes))
	defer func() {
		for _, name := range written {
			if name != "" {
				os.Remove(name) // what is left of it where this fails does not matter
			}
		}
	}()
	for i, c := range p.changes {
		var err error
		if written[i], err = writeBeside(c.Name, c.New, modes[i]); err != nil {
			return err
		}
	}
	for i, c := range p.changes {
		err := rename(written[i], c.Name)
		if err == nil {
			written[i] = ""
			continue
		}
		for j, c := range p.changes[:i] {
			back, backErr := writeBeside(c.Name, c.Old, modes[j])
			if backErr == nil {
				backErr = rename(back, c.Name)
			}
			if backErr != nil {
				err = errors.Join(err, fmt.Errorf("%s stays rewritten: %w", c.Name, backErr))
			}
		}
		return err
	}
	return nil
}

// rename is replaced by tests.
var rename = func(from, to string) error {
	// What a symbolic link leads to is replaced, not the link.
	to, err := filepath.EvalSymlinks(to)
	if err != nil {
		return err
	}
	return os.Rename(from, to)
}

// writeBeside writes a new file into the folder that a file is in, and returns its name.
func writeBeside(name string, text []byte, mode os.FileMode) (string, error) {
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

// relative returns a file's name below the module's folder.
func (p *Project) relative(name string) string {
	if rel, err := filepath.Rel(p.Dir, name); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return name
}
