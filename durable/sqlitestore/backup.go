package sqlitestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Backup writes a consistent copy of the file to a new file at path, while the file is
// in use. It takes some seconds a gigabyte. The copy omits deleted data. If others write
// during the backup, the log grows. Backup returns an error if a file exists at path.
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
