package sqlitestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Backup writes a consistent copy of the file, without deleted data, to a new file at
// path, with mode 0600. It returns an error if a file exists at path.
//
// Backup takes some seconds a gigabyte. Others may use the file meanwhile. If they write,
// the log grows.
func (s *Store) Backup(ctx context.Context, path string) (err error) {
	if err := s.checkReadable(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return &os.PathError{Op: "backup", Path: path, Err: os.ErrExist}
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // incomplete until the rename
	if err != nil {
		return err
	}
	tempPath := f.Name()
	defer func() {
		if err != nil {
			_ = os.Remove(tempPath)
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	err = retryWhileBusy(ctx, func() error {
		_, err := s.serviceDB.ExecContext(ctx, "VACUUM INTO ?", tempPath)
		return err
	})
	if err != nil {
		return wrapError(err, false)
	}
	for _, step := range []func() error{
		func() error { return syncFile(tempPath) },
		func() error { return os.Rename(tempPath, path) },
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
