CREATE TABLE hot.public_views (
    digest BLOB NOT NULL
);
COMMENT ON TABLE hot.public_views IS 'What made the views of main, one row: they are made anew where it is no longer so.';
COMMENT ON COLUMN hot.public_views.digest IS 'Digest of the statements.';

CREATE TABLE hot.run_changes (
    revision BIGINT PRIMARY KEY,
    run_id VARCHAR NOT NULL,
    change VARCHAR NOT NULL,
    change_time_utc TIMESTAMP NOT NULL
);
COMMENT ON TABLE hot.run_changes IS 'What happened to runs, for those who watch them. Old rows may be gone.';
COMMENT ON COLUMN hot.run_changes.revision IS 'Number of the change: rises by one.';
COMMENT ON COLUMN hot.run_changes.run_id IS 'The run; it may be deleted.';
COMMENT ON COLUMN hot.run_changes.change IS 'CREATED, APPENDED, SEALED or DELETED.';
COMMENT ON COLUMN hot.run_changes.change_time_utc IS 'When, UTC.';

CREATE TABLE hot.sealed_writers (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    append_kind VARCHAR NOT NULL,
    committed_sequence_number BIGINT NOT NULL,
    PRIMARY KEY (run_id, writer_id)
);
COMMENT ON TABLE hot.sealed_writers IS 'How far the writers of sealed runs had come, whose ledger is in files.';
COMMENT ON COLUMN hot.sealed_writers.run_id IS 'The run.';
COMMENT ON COLUMN hot.sealed_writers.writer_id IS 'The writer.';
COMMENT ON COLUMN hot.sealed_writers.append_kind IS 'STREAM: samples. UNARY: records. One kind per writer.';
COMMENT ON COLUMN hot.sealed_writers.committed_sequence_number IS 'Highest number that is stored.';
