CREATE TABLE hot.ledger (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    append_kind VARCHAR NOT NULL,
    digest BLOB NOT NULL,
    row_count BIGINT NOT NULL,
    rejected_row_count BIGINT NOT NULL,
    rejection_message VARCHAR NOT NULL,
    commit_time_utc TIMESTAMP NOT NULL,
    PRIMARY KEY (run_id, writer_id, sequence_number)
);
COMMENT ON TABLE hot.ledger IS 'Every append, committed in one transaction with its rows: each number of a writer once.';
COMMENT ON COLUMN hot.ledger.run_id IS 'The run.';
COMMENT ON COLUMN hot.ledger.writer_id IS 'The writer.';
COMMENT ON COLUMN hot.ledger.sequence_number IS 'Number of the append: 1, 2, 3, ... for each writer, without gaps.';
COMMENT ON COLUMN hot.ledger.append_kind IS 'STREAM: samples. UNARY: records. One kind per writer.';
COMMENT ON COLUMN hot.ledger.digest IS 'Digest of the content; tells a repetition from other content.';
COMMENT ON COLUMN hot.ledger.row_count IS 'Rows that it stored; 0 for a malformed batch.';
COMMENT ON COLUMN hot.ledger.rejected_row_count IS 'Rows that it brought and that were not stored.';
COMMENT ON COLUMN hot.ledger.rejection_message IS 'Why they were not stored; empty where all were.';
COMMENT ON COLUMN hot.ledger.commit_time_utc IS 'Clock of the service when it was committed, UTC.';
