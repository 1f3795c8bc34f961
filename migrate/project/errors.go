package project

import (
	"errors"
	"fmt"
	"go/scanner"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// compileErrors are the texts of different errors, with file names relative to dir.
type compileErrors struct {
	dir   string
	texts []string
}

func (c *compileErrors) add(pos, msg string) {
	if rel, err := filepath.Rel(c.dir, pos); err == nil && filepath.IsAbs(pos) && filepath.IsLocal(rel) {
		pos = rel
	}
	if text := strings.TrimPrefix(pos+": "+msg, ": "); !slices.Contains(c.texts, text) {
		c.texts = append(c.texts, text)
	}
}

// addParsing adds the errors of go list about a package and what it imports, and those of
// parsing its files. It reports whether there are any.
func (c *compileErrors) addParsing(pkg *packages.Package, fileErrors []error) bool {
	before := len(c.texts)
	packages.Visit([]*packages.Package{pkg}, nil, func(dep *packages.Package) {
		for _, e := range dep.Errors {
			if e.Kind == packages.ListError && !strings.HasPrefix(e.Msg, "# ") {
				c.add(strings.TrimPrefix(e.Pos, "-"), e.Msg)
			}
		}
	})
	for _, err := range fileErrors {
		var syntaxErrors scanner.ErrorList
		if errors.As(err, &syntaxErrors) { // only the first of a file counts
			c.add(syntaxErrors[0].Pos.String(), syntaxErrors[0].Msg)
		} else {
			c.add("", err.Error())
		}
	}
	return len(c.texts) > before
}

// err returns an error that lists up to ten errors, or nil if there are none.
func (c *compileErrors) err() error {
	if len(c.texts) == 0 {
		return nil
	}
	if n := len(c.texts) - 10; n > 0 {
		c.texts = append(c.texts[:10], fmt.Sprintf("and %d more", n))
	}
	return fmt.Errorf("the module does not compile:\n%s", strings.Join(c.texts, "\n"))
}
