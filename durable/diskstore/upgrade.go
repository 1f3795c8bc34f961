package diskstore

import "fmt"

// upgrade makes a store of an older version one of this. The marker says so first: from
// then on no older version opens it. If the process ends right then the next one goes on.
func (s *Store) upgrade(m *marker) error {
	if m.Format != formatVersion {
		m.Format = formatVersion
		if err := m.write(s.config.fs, s.dir); err != nil {
			return fmt.Errorf("diskstore: %w", err)
		}
	}
	b := s.db.NewBatch()
	for _, sh := range s.shards {
		if len(sh.noted) == 0 {
			continue
		}
		sh.batch = b
		from := appendSpace(nil, sh.index, spaceSender)
		sh.must(b.DeleteRange(from, after(from), nil))
		sh.writeSenders()
		sh.batch = nil
	}
	if b.Empty() {
		return b.Close()
	}
	if err := s.apply(b); err != nil {
		return fmt.Errorf("diskstore: %w", err)
	}
	return nil
}
