package queueserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The journal's format: 8 bytes "queuelg3", then frames. A frame is 12 bytes of header (the payload's length, the
// payload's CRC-32C, the CRC-32C of those 8 bytes; 4 bytes each, little-endian) and the payload, one record. The header's
// own sum tells a frame that was cut short by a crash from one whose length was damaged.
const (
	fileMagic   = "queuelg3"
	frameHeader = 12
)

// ErrCorrupt is what Open returns for a state that was damaged after it was written: the server does not start with it.
var ErrCorrupt = errors.New("corrupt queue journal")

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

// errTorn is how replay reports a file whose last write was cut short.
var errTorn = errors.New("torn tail")

// replay applies the records of a journal and returns the length of its intact part. The error is errTorn when the rest is
// left by an interrupted write (a prefix of a frame, or zeros that a file system allotted but did not fill), and wraps
// ErrCorrupt for everything else that is not a frame.
func replay(data []byte, s *state) (int64, error) {
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
			err = r.apply(s)
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
