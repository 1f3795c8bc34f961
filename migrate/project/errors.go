package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// ErrSeveralModules is the error for patterns that match packages of more than one
// module.
var ErrSeveralModules = errors.New("the packages belong to several modules")

// An ArgumentError reports a folder or a pattern that is not valid.
type ArgumentError struct{ text string }

func (e *ArgumentError) Error() string { return e.text }

// check refuses arguments that the go command refuses, or accepts with another meaning.
func (cfg Config) check() error {
	if cfg.Dir != "" {
		if info, err := os.Stat(cfg.Dir); err != nil {
			return &ArgumentError{fmt.Sprintf("there is no folder %s", cfg.Dir)}
		} else if !info.IsDir() {
			return &ArgumentError{fmt.Sprintf("%s is not a folder", cfg.Dir)}
		}
	}
	for _, pattern := range cfg.Patterns {
		file := pattern
		if !filepath.IsAbs(file) {
			file = filepath.Join(cfg.Dir, file)
		}
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return &ArgumentError{fmt.Sprintf("%s is a file: name packages, such as ./...", pattern)}
		}
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("there is no go command in PATH")
	}
	return nil
}

// explain returns a readable error for a go command that cannot list packages.
func (cfg Config) explain(ctx context.Context, err error) error {
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

// message returns the text of a package's error, with the file's name relative to dir.
func message(e packages.Error, dir string) string {
	if e.Pos == "" || e.Pos == "-" {
		return e.Msg
	}
	if rel, err := filepath.Rel(dir, e.Pos); err == nil && filepath.IsAbs(e.Pos) && filepath.IsLocal(rel) {
		return rel + ": " + e.Msg
	}
	return e.Pos + ": " + e.Msg
}

// compileErrors returns the first errors of packages that do not compile. The error of
// an imported package comes before the errors that it causes.
func compileErrors(pkgs []*packages.Package, dir string) error {
	var missing, syntax, typing, built []string // by the step that finds the error
	add := func(list *[]string, text string) {
		if !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	lines := make(map[string]bool) // files with a syntax error, which causes further ones
	packages.Visit(pkgs, nil, func(pkg *packages.Package) {
		for _, e := range pkg.Errors {
			text := message(e, dir)
			switch {
			case e.Kind == packages.ParseError:
				file, _, _ := strings.Cut(e.Pos, ".go:")
				if !lines[file] || slices.Contains(syntax, text) {
					lines[file] = true
					add(&syntax, text)
				}
			case e.Kind == packages.TypeError:
				add(&typing, text)
			case strings.HasPrefix(e.Msg, "# "): // the compiler repeats it
				add(&built, text)
			default:
				add(&missing, text)
			}
		}
	})
	texts := slices.Concat(missing, syntax)
	if len(texts) == 0 {
		texts = typing
	}
	if len(texts) == 0 {
		texts = built
	}
	if len(texts) == 0 {
		return nil
	}
	if n := len(texts) - 10; n > 0 {
		texts = append(texts[:10], fmt.Sprintf("and %d more", n))
	}
	return fmt.Errorf("the module does not compile:\n%s", strings.Join(texts, "\n"))
}
