CREATE OR REPLACE VIEW main.v_ack_lag AS
WITH commits AS (
    SELECT
        *,
        epoch_us(commit_time_utc) - epoch_us(lag(commit_time_utc) OVER (
            PARTITION BY run_id, writer_id ORDER BY sequence_number
        )) AS gap_us
    FROM main.ledger
),
writers AS (
    SELECT
        run_id,
        writer_id,
        any_value(append_kind) AS append_kind,
        max(sequence_number) AS append_count,
        sum(row_count)::BIGINT AS row_count,
        sum(rejected_row_count)::BIGINT AS rejected_row_count,
        min(commit_time_utc) AS first_commit_time_utc,
        max(commit_time_utc) AS last_commit_time_utc,
        sum(row_count) FILTER (gap_us IS NOT NULL)
            / nullif((epoch_us(max(commit_time_utc)) - epoch_us(min(commit_time_utc))) / 1e6, 0) AS rows_per_second,
        avg(gap_us) / 1e6 AS mean_gap_seconds,
        quantile_cont(gap_us, 0.99) / 1e6 AS p99_gap_seconds,
        max(gap_us) / 1e6 AS largest_gap_seconds
    FROM commits
    GROUP BY run_id, writer_id
),
newest AS (
    SELECT run_id, series.writer_id, series.node, series.boot_id, max(of_series.newest_ns) AS newest_sample_ns
    FROM main.series
    JOIN (
        SELECT run_id, series_id, max(time_ns) AS newest_ns FROM main.counter_samples GROUP BY run_id, series_id
    ) AS of_series USING (run_id, series_id)
    GROUP BY run_id, series.writer_id, series.node, series.boot_id
),
-- The anchor that is nearest in time tells how far apart the two clocks of the node are.
anchored AS (
    SELECT
        newest.run_id,
        newest.writer_id,
        newest.node,
        newest.boot_id,
        newest.newest_sample_ns,
        try_cast(newest.newest_sample_ns + arg_min(
            anchors.time_unix_ns::HUGEINT - anchors.time_ns, abs(newest.newest_sample_ns - anchors.time_ns)
        ) AS BIGINT) AS newest_sample_unix_ns
    FROM newest
    LEFT JOIN (SELECT * FROM main.events WHERE kind = 'clock_anchor') AS anchors
        ON anchors.run_id = newest.run_id AND anchors.node = newest.node AND anchors.boot_id = newest.boot_id
    GROUP BY newest.run_id, newest.writer_id, newest.node, newest.boot_id, newest.newest_sample_ns
)
SELECT
    run_id,
    writer_id,
    writers.append_kind,
    writers.append_count,
    writers.row_count,
    writers.rejected_row_count,
    writers.first_commit_time_utc,
    writers.last_commit_time_utc,
    writers.rows_per_second,
    writers.mean_gap_seconds,
    writers.p99_gap_seconds,
    writers.largest_gap_seconds,
    anchored.node,
    anchored.boot_id,
    anchored.newest_sample_ns,
    make_timestamp_ns(anchored.newest_sample_unix_ns)::TIMESTAMP AS newest_sample_time_utc,
    (epoch_us(writers.last_commit_time_utc) - anchored.newest_sample_unix_ns // 1000) / 1e6 AS ack_lag_seconds
FROM writers
LEFT JOIN anchored USING (run_id, writer_id);
COMMENT ON VIEW main.v_ack_lag IS 'How far the store is behind the writers: commits of each writer, and its newest sample beside the last of them. One row per writer and, of samples, per node and boot.';
COMMENT ON COLUMN main.v_ack_lag.run_id IS 'The run.';
COMMENT ON COLUMN main.v_ack_lag.writer_id IS 'The writer.';
COMMENT ON COLUMN main.v_ack_lag.append_kind IS 'STREAM: samples. UNARY: records.';
COMMENT ON COLUMN main.v_ack_lag.append_count IS 'Appends that are stored.';
COMMENT ON COLUMN main.v_ack_lag.row_count IS 'Rows that they stored.';
COMMENT ON COLUMN main.v_ack_lag.rejected_row_count IS 'Rows that they brought and that were not stored.';
COMMENT ON COLUMN main.v_ack_lag.first_commit_time_utc IS 'First commit by the clock of the service, UTC.';
COMMENT ON COLUMN main.v_ack_lag.last_commit_time_utc IS 'Last commit by the clock of the service, UTC.';
COMMENT ON COLUMN main.v_ack_lag.rows_per_second IS 'Rows behind the first append over the time from the first commit to the last. NULL: all came with one commit.';
COMMENT ON COLUMN main.v_ack_lag.mean_gap_seconds IS 'Mean time between the commits of two appends, 0 where one commit had both. NULL: there is one append.';
COMMENT ON COLUMN main.v_ack_lag.p99_gap_seconds IS '99th percentile of the same.';
COMMENT ON COLUMN main.v_ack_lag.largest_gap_seconds IS 'Longest of the same.';
COMMENT ON COLUMN main.v_ack_lag.node IS 'Host that the writer samples. NULL: it stored no samples.';
COMMENT ON COLUMN main.v_ack_lag.boot_id IS 'Boot of the node. NULL: as node.';
COMMENT ON COLUMN main.v_ack_lag.newest_sample_ns IS 'Its newest sample, CLOCK_MONOTONIC of the node. NULL: as node.';
COMMENT ON COLUMN main.v_ack_lag.newest_sample_time_utc IS 'The same by the wall clock of the node, told from the clock_anchor of the node that is nearest in time. NULL: there is none.';
COMMENT ON COLUMN main.v_ack_lag.ack_lag_seconds IS 'From the newest sample to the last commit: no better than the clocks of node and service agree. NULL: there is no clock_anchor.';
