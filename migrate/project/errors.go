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

// compileErrors returns an error that lists up to ten errors of the packages, or nil.
// Errors of imported packages come first: they may cause the others.
func compileErrors(pkgs []*packages.Package, dir string) error {
	var listErrors, syntaxErrors, typeErrors, buildErrors []string // errors by the step that finds them
	addText := func(list *[]string, text string) {
		if !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	brokenFiles := make(map[string]bool) // files with a syntax error: only its first error counts
	packages.Visit(pkgs, nil, func(pkg *packages.Package) {
		for _, e := range pkg.Errors {
			text := errorText(e, dir)
			switch {
			case e.Kind == packages.ParseError:
				file, _, _ := strings.Cut(e.Pos, ".go:")
				if !brokenFiles[file] || slices.Contains(syntaxErrors, text) {
					brokenFiles[file] = true
					addText(&syntaxErrors, text)
				}
			case e.Kind == packages.TypeError:
				addText(&typeErrors, text)
			case strings.HasPrefix(e.Msg, "# "): // the compiler's copy of another error
				addText(&buildErrors, text)
			default:
				addText(&listErrors, text)
			}
		}
	})
	errorTexts := slices.Concat(listErrors, syntaxErrors)
	if len(errorTexts) == 0 {
		errorTexts = typeErrors
	}
	if len(errorTexts) == 0 {
		errorTexts = buildErrors
	}
	if len(errorTexts) == 0 {
		return nil
	}
	if n := len(errorTexts) - 10; n > 0 {
		errorTexts = append(errorTexts[:10], fmt.Sprintf("and %d more", n))
	}
	return fmt.Errorf("the module does not compile:\n%s", strings.Join(errorTexts, "\n"))
}
