package tableserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	_ "modernc.org/sqlite" // the driver that opens dynoxide's file

	"github.com/commerce-integration/service/pkg/pause"
)

const (
	// trimBatch is how many stream records one statement deletes, and trimPause what passes until the next: the server
	// waits while another process writes, each time longer, so that a millisecond of it must be all at a time.
	trimBatch = 100
	trimPause = 5 * time.Millisecond
	// checkTime bounds the consistency check before a start; a file too large to be checked in it is taken as it is.
	checkTime = time.Second
)

// openDatabase opens dynoxide's SQLite file. It is in WAL mode, so that this process may write beside the running
// server: both wait for each other's short write transactions, the server at most 5 s. Checkpoints are left to the
// server, so that a trim never pays for them.
func openDatabase(path string) (*sql.DB, error) {
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: url.Values{
		"_pragma": {"busy_timeout(5000)", "synchronous(NORMAL)", "wal_autocheckpoint(0)"},
	}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("opening the table file %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// prepareFile checks the file of a stopped server and gives its stream records the two indexes without which every
// write into a table with a stream reads all of them. It says whether the file held that table yet.
func prepareFile(ctx context.Context, path string) (ready bool, err error) {
	if info, err := os.Stat(path); errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return false, nil
	}
	db, err := openDatabase(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := checkFile(ctx, db); err != nil {
		return false, fmt.Errorf("the table file %s is damaged: move it and its -wal and -shm files away, and the next start makes a new one: %w", path, err)
	}
	var tables int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '_stream_records'`).Scan(&tables); err != nil {
		return false, fmt.Errorf("looking for the stream records in %s: %w", path, err)
	}
	if tables == 0 {
		return false, nil
	}
	for _, statement := range []string{
		`CREATE INDEX IF NOT EXISTS _stream_records_by_sequence ON _stream_records (table_name, CAST(sequence_number AS INTEGER))`,
		`CREATE INDEX IF NOT EXISTS _stream_records_by_shard ON _stream_records (table_name, shard_id, CAST(sequence_number AS INTEGER))`,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return false, fmt.Errorf("indexing the stream records in %s: %w", path, err)
		}
	}
	return true, nil
}

func checkFile(ctx context.Context, db *sql.DB) error {
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	var found string
	err := db.QueryRowContext(bounded, `PRAGMA quick_check(1)`).Scan(&found)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil:
		return nil
	case err != nil:
		return err
	case found != "ok":
		return errors.New(found)
	}
	return nil
}

// trim deletes the records of a table's stream up to a sequence number, the newest always kept: the server derives the
// next sequence number from it.
func trim(ctx context.Context, db *sql.DB, table string, past int64) (int64, error) {
	const statement = `DELETE FROM _stream_records WHERE id IN (
		SELECT id FROM _stream_records
		WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) <= ?2
		AND CAST(sequence_number AS INTEGER) < (SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = ?1)
		ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?3)`
	var removed int64
	for {
		result, err := db.ExecContext(ctx, statement, table, past, trimBatch)
		if err != nil {
			return removed, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return removed, err
		}
		removed += n
		if n < trimBatch {
			return removed, nil
		}
		if err := pause.For(ctx, trimPause); err != nil {
			return removed, err
		}
	}
}
