package diskstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// # What the log proves
//
// After a crash the log ends where something is not as it was written. That is either
// where the crash has cut it, or damage: then acknowledged batches come after it, which
// the database would leave out in silence. (It looks for what proves that itself, but
// counts too little of what was synced.) So each batch says up to which one its shard's
// were synced when it was written. Open looks for that behind the first place that cannot
// be read, and has the marker say it: a store that lacks such a batch is damaged.

// A proof is in the log only: the database leaves it out of the tables.
//
//	shard  4 bytes
//	synced 8 bytes
const proofLen = 12

// prove adds to the batch how many of the shard's were synced before it.
func (sh *shard) prove() {
	b := binary.LittleEndian.AppendUint32(sh.buf[:0], uint32(sh.index))
	sh.buf = binary.LittleEndian.AppendUint64(b, uint64(sh.synced.Load()))
	sh.must(sh.batch.LogData(sh.buf, nil))
}

// The format of the log: blocks of chunks, of which one or several are a record.
const (
	logBlock = 32 << 10
	// maxEmpty is how many blocks without a chunk end a log: a file that is used again
	// has much of an older one.
	maxEmpty = 8
	// A chunk begins with a checksum, its length, its kind, the number of the log, and
	// what was synced.
	chunkHeader                                   = 4 + 2 + 1 + 4 + 8
	chunkFull, chunkFirst, chunkMiddle, chunkLast = 9, 10, 11, 12
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// readChunk returns the kind and the content of the chunk that begins there, if there is
// one of the log with that number, and its length.
func readChunk(b []byte, log uint32) (kind byte, content []byte, size int, ok bool) {
	if len(b) < chunkHeader || b[6] < chunkFull || b[6] > chunkLast || binary.LittleEndian.Uint32(b[7:]) != log {
		return 0, nil, 0, false
	}
	size = chunkHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) {
		return 0, nil, 0, false
	}
	sum := crc32.Checksum(b[6:size], castagnoli)
	return b[6], b[chunkHeader:size], size, sum>>15|sum<<17+0xa282ead8 == binary.LittleEndian.Uint32(b)
}

// readProofs calls found with what the records say that come after the first place of a
// log that cannot be read.
func readProofs(r io.Reader, log uint32, found func(shard uint32, synced int64)) error {
	var record []byte
	whole, begun, empty := true, false, 0
	block := make([]byte, logBlock)
	for empty < maxEmpty {
		n, err := io.ReadFull(r, block)
		empty++
		for b := block[:n]; len(b) >= chunkHeader; {
			kind, content, size, ok := readChunk(b, log)
			if !ok {
				whole, begun = false, false
				break // in what follows in this block anybody's bytes may look like one
			}
			b, empty = b[size:], 0
			if whole {
				continue
			}
			if kind == chunkFull || kind == chunkFirst {
				record, begun = record[:0], true
			}
			if begun {
				record = append(record, content...)
			}
			if begun && (kind == chunkFull || kind == chunkLast) {
				readProof(record, found)
				begun = false
			}
		}
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readProof(batch []byte, found func(shard uint32, synced int64)) {
	if _, ok := batchrepr.ReadHeader(batch); !ok {
		return
	}
	for r := batchrepr.Read(batch); ; {
		kind, key, _, ok, err := r.Next()
		if !ok || err != nil {
			return
		}
		if kind == pebble.InternalKeyKindLogData && len(key) == proofLen {
			found(binary.LittleEndian.Uint32(key), int64(binary.LittleEndian.Uint64(key[4:])))
		}
	}
}

// proveLog raises what a marker says is on the disk to what the newest file of the log
// proves, and writes it if that is more.
func (s *Store) proveLog(m *marker) error {
	names, err := s.gate.List(s.dir)
	if err != nil {
		return fmt.Errorf("diskstore: %w", err)
	}
	newest := ""
	for _, name := range names {
		if strings.HasSuffix(name, logSuffix) && (newest == "" || logNumber(name) > logNumber(newest)) {
			newest = name
		}
	}
	f, err := s.gate.Open(s.config.fs.PathJoin(s.dir, newest), vfs.SequentialReadsOption)
	if err != nil {
		return fmt.Errorf("diskstore: %w", err)
	}
	defer f.Close()
	more := false
	err = readProofs(f, uint32(logNumber(newest)), func(shard uint32, synced int64) {
		if int(shard) < len(m.Written) && synced > m.Written[shard] {
			m.Written[shard], more = synced, true
		}
	})
	if err == nil && more {
		err = m.write(s.config.fs, s.dir)
	}
	if err != nil {
		return fmt.Errorf("diskstore: %w", err)
	}
	return nil
}
