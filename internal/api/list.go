package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// listed is what list reads of `go list -json`.
type listed struct {
	ImportPath string
	Name       string
	Export     string // the file with the compiled package's types
	DepOnly    bool
}

// list returns the sorted lines of each public package, by its name.
func list() (map[string][]string, error) {
	packages, err := compiled()
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	listing := make(map[string][]string)
	for _, p := range packages {
		if p.DepOnly || p.Name == "main" || strings.Contains(p.ImportPath, "/internal/") {
			continue
		}
		types, err := imp.Import(p.ImportPath)
		if err != nil {
			return nil, err
		}
		if lines := surface(types); len(lines) > 0 {
			listing[path.Base(p.ImportPath)] = lines
		}
	}
	return listing, nil
}

// compiled lists the packages of the module and all that they import.
func compiled() ([]listed, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Export,DepOnly", "./...")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, err
		}
		packages = append(packages, p)
	}
}

// surface returns the sorted lines of a package.
func surface(p *types.Package) []string {
	l := lister{qualifier: func(q *types.Package) string {
		if q == p {
			return ""
		}
		return q.Name()
	}}
	for _, name := range p.Scope().Names() {
		if obj := p.Scope().Lookup(name); obj.Exported() {
			l.object(obj)
		}
	}
	slices.Sort(l.lines)
	return l.lines
}
