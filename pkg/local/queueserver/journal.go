package queueserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// The file format, of journals and snapshots alike: 8 bytes "queuelg1", then frames. A frame is 12 bytes of header (the
// payload's length, the payload's CRC-32C, the CRC-32C of those 8 bytes; 4 bytes each, little-endian) and the payload,
// one record. The header's own sum tells a frame that was cut short by a crash from one whose length was damaged.
const (
	fileMagic   = "queuelg1"
	frameHeader = 12
)

// ErrCorrupt is what Open returns for a state that was damaged after it was written: the server does not start with it.
var ErrCorrupt = errors.New("corrupt queue journal")

// keepBuffer is the largest buffer that a journal keeps for its next write.
const keepBuffer = 4 << 20

func checksum(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}

// appendFrame appends a record with its header.
func appendFrame(b []byte, r record) []byte {
	start := len(b)
	b = append(b, make([]byte, frameHeader)...)
	b = appendRecord(b, r)
	header, payload := b[start:start+frameHeader], b[start+frameHeader:]
	binary.LittleEndian.PutUint32(header, uint32(len(payload)))
	binary.LittleEndian.PutUint32(header[4:], checksum(payload))
	binary.LittleEndian.PutUint32(header[8:], checksum(header[:8]))
	return b
}

// journal is the file that records are appended to. Records of concurrent operations are written together: the first to
// commit writes everything that is pending, the others wait for it.
type journal struct {
	fsync bool

	mu       sync.Mutex
	finished *sync.Cond // a write ended
	file     *os.File
	size     int64  // of the file with the pending records
	pending  []byte // frames that are not yet written
	spare    []byte
	appended uint64 // records, since Open
	written  uint64
	writing  bool
	err      error // the first failure; nothing is written after it
}

func newJournal(f *os.File, size int64, fsync bool) *journal {
	j := &journal{file: f, size: size, fsync: fsync}
	j.finished = sync.NewCond(&j.mu)
	return j
}

// append adds a record to the next write.
func (j *journal) append(r record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := len(j.pending)
	j.pending = appendFrame(j.pending, r)
	j.size += int64(len(j.pending) - before)
	j.appended++
}

// status returns how many records were appended, the file's size in bytes and the first error of a write.
func (j *journal) status() (appended uint64, size int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.appended, j.size, j.err
}

// commit returns when the first n records are in the file: handed to the operating system, which keeps them when this
// process is killed, and with fsync on the disk.
func (j *journal) commit(n uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.written < n && j.err == nil {
		if j.writing {
			j.finished.Wait()
			continue
		}
		j.flush()
	}
	return j.err
}

// flush writes the pending records. The lock is released meanwhile, so that others can append.
func (j *journal) flush() {
	batch, upTo, file := j.pending, j.appended, j.file
	j.pending, j.spare = j.spare[:0], nil
	j.writing = true
	j.mu.Unlock()
	_, err := file.Write(batch)
	if err == nil && j.fsync {
		err = file.Sync()
	}
	j.mu.Lock()
	j.writing = false
	if cap(batch) <= keepBuffer {
		j.spare = batch[:0]
	}
	if err != nil {
		j.err = fmt.Errorf("write journal: %w", err)
	} else {
		j.written = upTo
	}
	j.finished.Broadcast()
}

// drain writes everything that was appended. Nothing may be appended meanwhile.
func (j *journal) drain() error {
	appended, _, _ := j.status()
	return j.commit(appended)
}

// rotate continues in next, an empty journal. Nothing may be pending.
func (j *journal) rotate(next *os.File) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	old := j.file
	j.file, j.size = next, int64(len(fileMagic))
	if err := old.Close(); err != nil {
		return fmt.Errorf("end journal: %w", err)
	}
	return nil
}

// close writes the pending records, to the disk, and closes the file.
func (j *journal) close() error {
	err := j.drain()
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		err = j.file.Sync()
	}
	return errors.Join(err, j.file.Close())
}

// errTorn is how replay reports a file whose last write was cut short.
var errTorn = errors.New("torn tail")

// replay applies the records of a file and returns the length of its intact part. The error is errTorn when the rest is
// left by an interrupted write (a prefix of a frame, or zeros that a file system allotted but did not fill), and wraps
// ErrCorrupt for everything else that is not a frame.
func replay(data []byte, apply func(record) error) (int64, error) {
	if len(data) < len(fileMagic) && string(data) == fileMagic[:len(data)] {
		return 0, errTorn
	}
	if !bytes.HasPrefix(data, []byte(fileMagic)) {
		return 0, fmt.Errorf("%w: not a journal of this version", ErrCorrupt)
	}
	at := len(fileMagic)
	for at < len(data) {
		payload, err := nextFrame(data[at:])
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return int64(at), errTorn
		}
		if err != nil {
			return int64(at), fmt.Errorf("%w at byte %d: %w", ErrCorrupt, at, err)
		}
		r, err := readRecord(payload)
		if err == nil {
			err = apply(r)
		}
		if err != nil {
			return int64(at), fmt.Errorf("%w at byte %d: %w", ErrCorrupt, at, err)
		}
		at += frameHeader + len(payload)
	}
	return int64(at), nil
}

// nextFrame returns the payload of the first frame, io.ErrUnexpectedEOF when the data ends before it does.
func nextFrame(data []byte) ([]byte, error) {
	if len(data) < frameHeader || len(bytes.TrimLeft(data, "\x00")) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	header := data[:frameHeader]
	if binary.LittleEndian.Uint32(header[8:]) != checksum(header[:8]) {
		return nil, errors.New("header checksum mismatch")
	}
	length := binary.LittleEndian.Uint32(header)
	if uint64(len(data)-frameHeader) < uint64(length) {
		return nil, io.ErrUnexpectedEOF
	}
	payload := data[frameHeader : frameHeader+int(length)]
	if binary.LittleEndian.Uint32(header[4:]) != checksum(payload) {
		return nil, errors.New("checksum mismatch")
	}
	return payload, nil
}
