package project

import (
	"path/filepath"
	"testing"
)

// FailRename makes Fix fail with err when it replaces the file name.
func FailRename(t *testing.T, name string, err error) {
	name, evalErr := filepath.EvalSymlinks(name)
	if evalErr != nil {
		t.Fatal(evalErr)
	}
	old := renameFile
	t.Cleanup(func() { renameFile = old })
	renameFile = func(from, to string) error {
		if to == name {
			return err
		}
		return old(from, to)
	}
}
