CREATE TABLE hot.sealed_files (
    run_id VARCHAR NOT NULL,
    table_name VARCHAR NOT NULL,
    row_count BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 VARCHAR NOT NULL
);
COMMENT ON TABLE hot.sealed_files IS 'Parquet files of sealed runs. A table without rows has no file.';
COMMENT ON COLUMN hot.sealed_files.run_id IS 'The run.';
COMMENT ON COLUMN hot.sealed_files.table_name IS 'The table whose rows it has; the name of the file too.';
COMMENT ON COLUMN hot.sealed_files.row_count IS 'Its rows.';
COMMENT ON COLUMN hot.sealed_files.size_bytes IS 'Its size.';
COMMENT ON COLUMN hot.sealed_files.sha256 IS 'SHA-256 of its content, in hexadecimal.';

CREATE TABLE hot.dropping_runs (
    run_id VARCHAR NOT NULL
);
COMMENT ON TABLE hot.dropping_runs IS 'Runs whose rows in hot count no more and are being deleted, a slice at a time: sealed or deleted ones.';
COMMENT ON COLUMN hot.dropping_runs.run_id IS 'The run.';
