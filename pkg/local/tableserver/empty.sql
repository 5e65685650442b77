-- The database file that dynoxide 1.2.1 starts with, and what it lacks: the indexes and triggers at the end.
-- "go generate" makes empty.db from it. The tables up to there are dynoxide's own, as its first start would make them.
CREATE TABLE _config (
                key TEXT PRIMARY KEY,
                value TEXT NOT NULL
            );
INSERT INTO _config VALUES('schema_version','9');
CREATE TABLE _tables (
                table_name TEXT PRIMARY KEY,
                key_schema TEXT NOT NULL,
                attribute_definitions TEXT NOT NULL,
                gsi_definitions TEXT,
                lsi_definitions TEXT,
                stream_enabled INTEGER DEFAULT 0,
                stream_view_type TEXT,
                stream_label TEXT,
                ttl_attribute TEXT,
                ttl_enabled INTEGER DEFAULT 0,
                created_at INTEGER NOT NULL,
                table_status TEXT NOT NULL DEFAULT 'ACTIVE',
                billing_mode TEXT DEFAULT 'PAY_PER_REQUEST',
                provisioned_throughput TEXT,
                tags TEXT,
                sse_specification TEXT,
                table_class TEXT,
                deletion_protection_enabled INTEGER DEFAULT 0,
                on_demand_throughput TEXT,
                table_id TEXT,
                vector_index_definitions TEXT
            );
CREATE TABLE _stream_records (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                table_name TEXT NOT NULL,
                event_name TEXT NOT NULL,
                keys_json TEXT NOT NULL,
                new_image TEXT,
                old_image TEXT,
                sequence_number TEXT NOT NULL,
                shard_id TEXT NOT NULL,
                created_at INTEGER NOT NULL,
                user_identity TEXT
            );

-- Every write into a table with a stream reads the highest sequence number, and every poll reads on from one: without the
-- indexes both read all records.
CREATE INDEX _stream_records_by_sequence ON _stream_records (table_name, CAST(sequence_number AS INTEGER));
CREATE INDEX _stream_records_by_shard ON _stream_records (table_name, shard_id, CAST(sequence_number AS INTEGER));

-- Two tables that the server's API can write, so that no SQLite driver is needed beside it: triggers carry out what their
-- items ask for. The first serves the file and the streams, the second the service's table, which it names.
CREATE TABLE "stream-control" (
                pk TEXT NOT NULL,
                sk TEXT NOT NULL DEFAULT '',
                item_json TEXT NOT NULL,
                item_size INTEGER NOT NULL,
                cached_at REAL,
                hash_prefix TEXT NOT NULL DEFAULT '',
                PRIMARY KEY (pk, sk)
            );
INSERT INTO _tables (table_name, key_schema, attribute_definitions, created_at, table_id)
VALUES ('stream-control', '[{"AttributeName":"table","KeyType":"HASH"}]',
        '[{"AttributeName":"table","AttributeType":"S"}]', 0, '00000000-0000-4000-8000-000000000001');
CREATE TABLE "expiry-control" (
                pk TEXT NOT NULL,
                sk TEXT NOT NULL DEFAULT '',
                item_json TEXT NOT NULL,
                item_size INTEGER NOT NULL,
                cached_at REAL,
                hash_prefix TEXT NOT NULL DEFAULT '',
                PRIMARY KEY (pk, sk)
            );
INSERT INTO _tables (table_name, key_schema, attribute_definitions, created_at, table_id)
VALUES ('expiry-control', '[{"AttributeName":"table","KeyType":"HASH"}]',
        '[{"AttributeName":"table","AttributeType":"S"}]', 0, '00000000-0000-4000-8000-000000000002');

-- {table, past}: delete the oldest records of the table's stream up to the sequence number past, except the newest, from
-- which the server derives the next number.
CREATE TRIGGER trim_stream AFTER INSERT ON "stream-control" WHEN json_extract(NEW.item_json, '$.past.N') IS NOT NULL BEGIN
    DELETE FROM _stream_records WHERE id IN (
        SELECT id FROM _stream_records
        WHERE table_name = json_extract(NEW.item_json, '$.table.S')
        AND CAST(sequence_number AS INTEGER) <= CAST(json_extract(NEW.item_json, '$.past.N') AS INTEGER)
        AND CAST(sequence_number AS INTEGER) < (
            SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = json_extract(NEW.item_json, '$.table.S')
        )
        ORDER BY CAST(sequence_number AS INTEGER) LIMIT 5000
    );
END;

-- {check: true}: refuse the item when the file is damaged.
CREATE TRIGGER check_file BEFORE INSERT ON "stream-control" WHEN json_extract(NEW.item_json, '$.check.BOOL') BEGIN
    SELECT RAISE(ABORT, 'quick_check failed') WHERE EXISTS (SELECT 1 FROM pragma_quick_check WHERE quick_check <> 'ok');
END;

-- {table, attribute, oldest, now, after}: look at the next 100 items of the service's table after a row, and add the keys
-- of those that expire between the two times (found) and the row of the last one looked at (last, 0 at the end). An index
-- of the attribute would make every put dearer, by more in a minute of writing than reading the table costs; the API's
-- Scan reads the whole table for each of its pages.
CREATE TRIGGER find_expired AFTER INSERT ON "expiry-control" BEGIN
    UPDATE "expiry-control" SET item_json = (
        SELECT json_set(NEW.item_json,
            '$.last', json_object('N', CAST(COALESCE(MAX(number), 0) AS TEXT)),
            '$.found', json_object('L', json_group_array(json_object('M', json_object(
                'PK', json_extract(item, '$.PK'), 'SK', json_extract(item, '$.SK')
            ))) FILTER (WHERE expires BETWEEN CAST(json_extract(NEW.item_json, '$.oldest.N') AS INTEGER)
                AND CAST(json_extract(NEW.item_json, '$.now.N') AS INTEGER))))
        FROM (
            SELECT rowid AS number, item_json AS item,
                CAST(json_extract(item_json, '$."' || json_extract(NEW.item_json, '$.attribute.S') || '".N') AS INTEGER) AS expires
            FROM commerce WHERE rowid > CAST(json_extract(NEW.item_json, '$.after.N') AS INTEGER) ORDER BY rowid LIMIT 100
        )
    ) WHERE pk = NEW.pk AND sk = NEW.sk;
END;
