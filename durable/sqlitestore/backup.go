package sqlitestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Backup copies the file, as it is at one moment, to a new one, while it is in use: a file
// that can be opened, without what was deleted. It takes some seconds a gigabyte, and the log
// grows meanwhile if others write. It returns an error if there is a file at the path.
func (s *Store) Backup(ctx context.Context, path string) (err error) {
	if err := s.mayRead(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return &os.PathError{Op: "backup", Path: path, Err: os.ErrExist}
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // not a whole one yet
	if err != nil {
		return err
	}
	part := f.Name()
	defer func() {
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	err = retry(ctx, func() error {
		_, err := s.tend.ExecContext(ctx, "VACUUM INTO ?", part)
		return err
	})
	if err != nil {
		return explain(err, false)
	}
	for _, step := range []func() error{
		func() error { return syncFile(part) },
		func() error { return os.Rename(part, path) },
		func() error { return syncFile(filepath.Dir(path)) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
