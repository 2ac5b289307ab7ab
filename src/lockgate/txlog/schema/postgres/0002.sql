-- Appends, and nothing but appends, to one table in one statement: one round trip, and the lock is held for no longer than
-- the server needs. NULL, and nothing done, where anything is not as expected: then it is done step by step. Each entry of
-- `commits` has a txn_id, blind_append and what follows the timestamp in its head; each of `files` names its commit by
-- its place.
CREATE FUNCTION dl_append(
  patience text, table_name text, expected bigint, metadata_seen bigint, protocol_seen bigint, commits json, files json
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  t dl_tables%ROWTYPE;
  many bigint := json_array_length(commits);
  began bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RETURN NULL;
  END IF;
  PERFORM set_config('lock_timeout', patience, true);
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  SELECT * INTO t FROM dl_tables WHERE name = table_name FOR UPDATE;
  IF NOT FOUND OR t.metadata_version <> metadata_seen OR t.protocol_version <> protocol_seen
    OR expected <> t.current_version + 1
    OR EXISTS (SELECT FROM json_array_elements(commits) c JOIN dl_table_versions v ON v.txn_id = c ->> 0)
  THEN
    RETURN NULL;
  END IF;
  began := greatest((extract(epoch FROM clock_timestamp()) * 1000)::bigint, t.last_timestamp + 1);
  INSERT INTO dl_table_versions (table_id, version, timestamp, txn_id, blind_append, head)
    SELECT t.table_id, t.current_version + n, began + n - 1, c ->> 0, (c ->> 1)::boolean,
      '{"commitInfo":{"timestamp":' || (began + n - 1) || ',"inCommitTimestamp":' || (began + n - 1) || (c ->> 2)
    FROM json_array_elements(commits) WITH ORDINALITY AS e(c, n);
  INSERT INTO dl_add_files (table_id, added_version, removed_version, ordinal, path_hash, size, modification_time,
      data_change, path, partition_values, stats, tags, deletion_vector, extra)
    SELECT t.table_id, t.current_version + 1 + f.c, 9223372036854775807, f.o, f.h, f.s, f.m, f.d, f.p, f.v, f.t, f.g, f.x, f.e
    FROM json_to_recordset(files)
      AS f(c bigint, o integer, h bigint, s bigint, m bigint, d boolean, p text, v text, t text, g text, x text, e text);
  UPDATE dl_tables SET current_version = t.current_version + many, last_timestamp = began + many - 1
    WHERE table_id = t.table_id;
  RETURN t.current_version + 1;
END
$$;
