package faults_test

import (
	"hash/crc32"
	"strconv"
)

func checksum(body []byte) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)
}
