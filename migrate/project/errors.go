package project

import (
	"context"
	"errors"
	"fmt"
	"go/scanner"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// ErrSeveralModules is the error of Load if the patterns match packages of several modules.
var ErrSeveralModules = errors.New("the packages belong to several modules")

// An ArgumentError is the error of Load for an invalid Config.Dir or Config.Patterns.
type ArgumentError struct{ text string }

func (e *ArgumentError) Error() string { return e.text }

// validate returns an error for a folder that does not exist, and for a pattern that is a
// file.
func (cfg Config) validate() error {
	if cfg.Dir != "" {
		if info, err := os.Stat(cfg.Dir); err != nil {
			return &ArgumentError{fmt.Sprintf("there is no folder %s", cfg.Dir)}
		} else if !info.IsDir() {
			return &ArgumentError{fmt.Sprintf("%s is not a folder", cfg.Dir)}
		}
	}
	for _, pattern := range cfg.Patterns {
		patternPath := pattern
		if !filepath.IsAbs(patternPath) {
			patternPath = filepath.Join(cfg.Dir, patternPath)
		}
		if info, err := os.Stat(patternPath); err == nil && !info.IsDir() {
			return &ArgumentError{fmt.Sprintf("%s is a file: name packages, such as ./...", pattern)}
		}
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("there is no go command in PATH")
	}
	return nil
}

// readableError turns an error of the go command into a readable one.
func (cfg Config) readableError(ctx context.Context, err error) error {
	cmd := exec.CommandContext(ctx, "go", "env", "GOMOD", "GOWORK")
	cmd.Dir, cmd.Env = cfg.Dir, cfg.Env
	if out, envErr := cmd.Output(); envErr == nil {
		mod, work, _ := strings.Cut(string(out), "\n")
		if work = strings.TrimSpace(work); (mod == "" || mod == os.DevNull) && (work == "" || work == "off") {
			dir, _ := filepath.Abs(cfg.Dir)
			return fmt.Errorf("there is no go.mod file in %s, nor in any folder above", dir)
		}
	}
	text := err.Error()
	if _, stderr, ok := strings.Cut(text, "stderr: "); ok && strings.TrimSpace(stderr) != "" {
		text = stderr
	}
	return errors.New(strings.TrimPrefix(strings.TrimSpace(text), "go: "))
}

// errorText returns the text of a package's error, with file names relative to dir.
func errorText(e packages.Error, dir string) string {
	if e.Pos == "" || e.Pos == "-" {
		return e.Msg
	}
	if rel, err := filepath.Rel(dir, e.Pos); err == nil && filepath.IsAbs(e.Pos) && filepath.IsLocal(rel) {
		return rel + ": " + e.Msg
	}
	return e.Pos + ": " + e.Msg
}

// compileErrors are the errors of packages, by the step that finds them.
type compileErrors struct{ list, syntax, types []string }

func addText(list *[]string, text string) {
	if !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// add adds the errors of go list about a package, and those of parsing its files.
func (c *compileErrors) add(pkg *packages.Package, fileErrors []error) {
	packages.Visit([]*packages.Package{pkg}, nil, func(dep *packages.Package) {
		for _, e := range dep.Errors {
			if e.Kind == packages.ListError && !strings.HasPrefix(e.Msg, "# ") {
				addText(&c.list, e.Pos+"\x00"+e.Msg)
			}
		}
	})
	for _, err := range fileErrors {
		var syntaxErrors scanner.ErrorList
		if errors.As(err, &syntaxErrors) { // only the first of a file counts
			addText(&c.syntax, syntaxErrors[0].Pos.String()+"\x00"+syntaxErrors[0].Msg)
		} else {
			addText(&c.syntax, "\x00"+err.Error())
		}
	}
}

func (c *compileErrors) addTypes(errs []types.Error) {
	for _, e := range errs {
		addText(&c.types, e.Fset.Position(e.Pos).String()+"\x00"+e.Msg)
	}
}

// any reports whether there are errors other than type errors.
func (c *compileErrors) any() bool { return len(c.list)+len(c.syntax) > 0 }

// err returns an error that lists up to ten errors, with file names relative to dir. It
// returns nil if there are none. Errors of an earlier step may cause those of the later.
func (c *compileErrors) err(dir string) error {
	texts := slices.Concat(c.list, c.syntax)
	if len(texts) == 0 {
		texts = c.types
	}
	if len(texts) == 0 {
		return nil
	}
	for i, text := range texts {
		pos, msg, _ := strings.Cut(text, "\x00")
		texts[i] = errorText(packages.Error{Pos: pos, Msg: msg}, dir)
	}
	if n := len(texts) - 10; n > 0 {
		texts = append(texts[:10], fmt.Sprintf("and %d more", n))
	}
	return fmt.Errorf("the module does not compile:\n%s", strings.Join(texts, "\n"))
}
