package tableserver

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func sequence(t *testing.T, s *Server) (count, lowest, highest int) {
	t.Helper()
	row := s.db.QueryRowContext(t.Context(), `SELECT count(*), min(CAST(sequence_number AS INTEGER)), max(CAST(sequence_number AS INTEGER)) FROM _stream_records`)
	if err := row.Scan(&count, &lowest, &highest); err != nil {
		t.Fatalf("reading the stream records: %v", err)
	}
	return count, lowest, highest
}

func TestStreamStatementsOfTheServerUseTheIndexes(t *testing.T) {
	server := start(t, t.TempDir())
	for statement, index := range map[string]string{
		`SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 FROM _stream_records WHERE table_name = 'commerce'`:                                                                         "_stream_records_by_sequence",
		`SELECT new_image FROM _stream_records WHERE table_name = 'commerce' AND shard_id = 's' AND CAST(sequence_number AS INTEGER) > 7 ORDER BY CAST(sequence_number AS INTEGER) ASC LIMIT 1000`: "_stream_records_by_shard",
	} {
		rows, err := server.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement)
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(detail + "; ")
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan.String(), index) || strings.Contains(plan.String(), "SCAN") || strings.Contains(plan.String(), "TEMP B-TREE") {
			t.Errorf("plan of %s: got %s, want a search by %s", statement, plan.String(), index)
		}
	}
}

func TestTrimKeepsTheNewestRecordSoThatNumbersRise(t *testing.T) {
	server := start(t, t.TempDir())
	db := client(server)
	createTable(t, db)
	for i := range 10 {
		if err := put(t.Context(), db, strconv.Itoa(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		past                         string
		removed                      int64
		count, lowest, highest, next int
	}{
		{past: "4", removed: 4, count: 6, lowest: 5, highest: 10},
		{past: "4", removed: 0, count: 6, lowest: 5, highest: 10},
		{past: "99", removed: 5, count: 1, lowest: 10, highest: 10},
	} {
		removed, err := server.Trim(t.Context(), table, step.past)
		if err != nil || removed != step.removed {
			t.Errorf("Trim to %s = %d, %v; want %d", step.past, removed, err, step.removed)
		}
		if count, lowest, highest := sequence(t, server); count != step.count || lowest != step.lowest || highest != step.highest {
			t.Errorf("after Trim to %s: %d records %d-%d, want %d records %d-%d", step.past, count, lowest, highest, step.count, step.lowest, step.highest)
		}
	}
	if err := put(t.Context(), db, "last", nil); err != nil {
		t.Fatal(err)
	}
	if _, _, highest := sequence(t, server); highest != 11 {
		t.Errorf("the number after trimming everything is %d, want 11", highest)
	}
	for _, bad := range []string{"", "x", "1.5"} {
		if _, err := server.Trim(t.Context(), table, bad); err == nil {
			t.Errorf("Trim to %q works, want an error", bad)
		}
	}
}

func TestTrimDoesNotDisturbWrites(t *testing.T) {
	dir := t.TempDir()
	server := start(t, dir)
	db := client(server)
	createTable(t, db)
	const writers, each = 4, 250
	stop := make(chan struct{})
	var trimming, writing sync.WaitGroup
	trimming.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := server.Trim(t.Context(), table, "1000000"); err != nil {
					t.Errorf("Trim beside writes: %v", err)
					return
				}
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				if err := put(t.Context(), db, fmt.Sprintf("%d-%d", w, i), map[string]types.AttributeValue{"v": &types.AttributeValueMemberN{Value: "1"}}); err != nil {
					t.Errorf("put beside trims: %v", err)
					return
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	trimming.Wait()
	if _, _, highest := sequence(t, server); highest != writers*each {
		t.Errorf("highest sequence number is %d after %d puts", highest, writers*each)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	check, err := openDatabase(filepath.Join(dir, "tables.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer check.Close()
	if err := checkFile(t.Context(), check); err != nil {
		t.Errorf("the file after writes beside trims: %v", err)
	}
}
