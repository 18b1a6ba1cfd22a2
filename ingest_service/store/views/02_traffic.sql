-- Readings in the order in which they were stored: one from before the latest is left out, and of several at one time
-- all but the last. Where readings were late because the clock of the counter went back, it begins again.
CREATE OR REPLACE VIEW main.v_intervals AS
WITH readings AS (
    SELECT
        counters.run_id,
        counters.counter_id,
        counters.port_id,
        counters.boot_id = '' AS is_boot_unknown,
        counters.unit_bytes,
        counters.counter_bits,
        samples.series_id,
        samples.time_ns,
        samples.value,
        coalesce(samples.read_duration_ns, 0) // 2 AS half_read_ns,
        samples.stored_index,
        row_number() OVER stored AS reading_number,
        lag(samples.time_ns) OVER stored AS last_time_ns,
        lead(samples.time_ns) OVER stored AS next_time_ns,
        max(samples.time_ns) OVER (stored ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest_ns,
        lag(samples.time_ns) OVER stored
            < max(samples.time_ns) OVER (stored ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS follows_late,
        lag(samples.series_id) OVER stored AS stored_after_series_id
    FROM main.counter_samples AS samples
    JOIN main.v_counters AS counters USING (run_id, series_id)
    WINDOW stored AS (PARTITION BY counters.run_id, counters.counter_id ORDER BY samples.stored_index)
),
pairs AS (
    SELECT
        *,
        lag(series_id) OVER kept AS series_id_before,
        lag(value) OVER kept AS value_before,
        lag(time_ns) OVER kept AS time_before_ns,
        lag(half_read_ns) OVER kept AS half_read_before_ns,
        lag(reading_number) OVER kept AS reading_number_before,
        lead(time_ns) OVER kept AS time_after_ns
    FROM readings
    WHERE (latest_ns IS NULL OR time_ns > latest_ns OR (time_ns = latest_ns AND time_ns = last_time_ns))
        AND next_time_ns IS DISTINCT FROM time_ns
    WINDOW kept AS (PARTITION BY run_id, counter_id ORDER BY stored_index)
),
intervals AS (
    SELECT
        run_id,
        counter_id,
        port_id,
        series_id,
        time_before_ns + least(half_read_before_ns, time_ns - time_before_ns - 1) AS start_ns,
        time_ns + least(half_read_ns, coalesce(time_after_ns - 1, 9223372036854775807) - time_ns) AS end_ns,
        reading_number - reading_number_before - 1 AS left_out_count,
        unit_bytes,
        greatest(unit_bytes, 1) AS least_unit_bytes,
        value,
        value_before,
        value >= value_before AND value_before >= 0 AS is_plain,
        -- A counter that fell, read as the unsigned number of 64 bits that it is.
        CASE WHEN NOT (value >= value_before AND value_before >= 0) THEN
            value::HUGEINT + CASE WHEN value < 0 THEN 18446744073709551616::HUGEINT ELSE 0::HUGEINT END
        END AS word,
        CASE WHEN NOT (value >= value_before AND value_before >= 0) THEN
            value_before::HUGEINT + CASE WHEN value_before < 0 THEN 18446744073709551616::HUGEINT ELSE 0::HUGEINT END
        END AS word_before,
        CASE counter_bits WHEN 32 THEN 4294967296::HUGEINT ELSE 18446744073709551616::HUGEINT END AS width_count,
        (follows_late AND stored_after_series_id = series_id_before)
            OR (is_boot_unknown AND series_id != series_id_before) AS is_break
    FROM pairs
    WHERE time_ns > time_before_ns
),
passed AS (
    SELECT
        *,
        CASE WHEN NOT is_plain THEN ((word - word_before) % width_count + width_count) % width_count END AS passed_count
    FROM intervals
),
counted AS (
    SELECT
        *,
        CASE
            WHEN is_break THEN NULL
            WHEN is_plain THEN value - value_before
            -- 200 bytes a nanosecond is 1.6 Tb/s, what the fastest port carries.
            WHEN word < word_before AND NOT (
                passed_count <= width_count // 2
                AND passed_count::DOUBLE * unit_bytes <= 200 * (end_ns - start_ns + 1e6)
            ) THEN NULL
            WHEN passed_count <= 9007199254740992 THEN passed_count::BIGINT
        END AS any_count
    FROM passed
)
SELECT
    run_id,
    counter_id,
    port_id,
    series_id,
    start_ns,
    end_ns,
    end_ns - start_ns AS interval_ns,
    CASE WHEN any_count <= 9007199254740992 // least_unit_bytes THEN any_count END AS step_count,
    CASE WHEN unit_bytes > 0 AND any_count <= 9007199254740992 // least_unit_bytes THEN any_count * unit_bytes END
        AS interval_bytes,
    coalesce(any_count <= 9007199254740992 // least_unit_bytes AND word < word_before, false) AS is_wrap,
    coalesce(any_count > 9007199254740992 // least_unit_bytes, true) AS is_reset,
    left_out_count
FROM counted;
COMMENT ON VIEW main.v_intervals IS 'What counters counted between one reading and the next, wraps undone. A reading counts at the middle of its read, where it is known how long that took, and before the next reading begins.';
COMMENT ON COLUMN main.v_intervals.run_id IS 'The run.';
COMMENT ON COLUMN main.v_intervals.counter_id IS 'The counter; see v_counters.';
COMMENT ON COLUMN main.v_intervals.port_id IS 'The physical port and what is counted there; see v_counters.';
COMMENT ON COLUMN main.v_intervals.series_id IS 'The series of the later reading.';
COMMENT ON COLUMN main.v_intervals.start_ns IS 'The earlier reading, CLOCK_MONOTONIC of the node.';
COMMENT ON COLUMN main.v_intervals.end_ns IS 'The later reading, CLOCK_MONOTONIC of the node.';
COMMENT ON COLUMN main.v_intervals.interval_ns IS 'Time between the two.';
COMMENT ON COLUMN main.v_intervals.step_count IS 'Counts between the two. NULL: the counter began again, what it counted is not known.';
COMMENT ON COLUMN main.v_intervals.interval_bytes IS 'Bytes between the two. NULL: the counter began again, or does not count bytes.';
COMMENT ON COLUMN main.v_intervals.is_wrap IS 'Whether the counter passed its width and went on from 0.';
COMMENT ON COLUMN main.v_intervals.is_reset IS 'Whether the counter began again: it fell by more than a wrap can explain, rose by more than 2^53 bytes, or its clock went back.';
COMMENT ON COLUMN main.v_intervals.left_out_count IS 'Readings between the two that do not count: another one has the same time, or they are from before the latest.';

CREATE OR REPLACE VIEW main.v_traffic AS
SELECT
    run_id,
    counters.node,
    counters.boot_id,
    counters.physical_port,
    counters.device_name,
    counters.metric,
    series_id,
    counters.writer_id,
    intervals.start_ns,
    intervals.end_ns,
    intervals.interval_ns,
    intervals.usual_interval_ns,
    greatest(round(intervals.interval_ns / intervals.usual_interval_ns)::BIGINT - 1, 0) AS missed_tick_count,
    intervals.left_out_count,
    intervals.step_count,
    intervals.interval_bytes,
    intervals.interval_bytes / (intervals.interval_ns / 1e9) AS bytes_per_second,
    intervals.interval_bytes * 8 / (intervals.interval_ns / 1e9) AS bits_per_second,
    intervals.is_wrap,
    intervals.is_reset
FROM (
    SELECT *, median(interval_ns) OVER (PARTITION BY run_id, counter_id) AS usual_interval_ns FROM main.v_intervals
) AS intervals
JOIN main.v_counters AS counters USING (run_id, series_id);
COMMENT ON VIEW main.v_traffic IS 'Rates between consecutive readings of each counter, one row per reading but the first.';
COMMENT ON COLUMN main.v_traffic.run_id IS 'The run.';
COMMENT ON COLUMN main.v_traffic.node IS 'Host that reads the counter.';
COMMENT ON COLUMN main.v_traffic.boot_id IS 'Boot of the node; monotonic times of two boots do not compare. Empty where not known.';
COMMENT ON COLUMN main.v_traffic.physical_port IS 'The physical port; the device with its port where nobody names one.';
COMMENT ON COLUMN main.v_traffic.device_name IS 'The device with its port: mlx5_0/1, eth0.';
COMMENT ON COLUMN main.v_traffic.metric IS 'What is counted.';
COMMENT ON COLUMN main.v_traffic.series_id IS 'The series of the later reading.';
COMMENT ON COLUMN main.v_traffic.writer_id IS 'Writer of the later reading.';
COMMENT ON COLUMN main.v_traffic.start_ns IS 'The earlier reading, CLOCK_MONOTONIC of the node.';
COMMENT ON COLUMN main.v_traffic.end_ns IS 'The later reading, CLOCK_MONOTONIC of the node.';
COMMENT ON COLUMN main.v_traffic.interval_ns IS 'Time between the two.';
COMMENT ON COLUMN main.v_traffic.usual_interval_ns IS 'Median of the times between two readings of the counter.';
COMMENT ON COLUMN main.v_traffic.missed_tick_count IS 'Readings that should have been between the two, by the usual interval.';
COMMENT ON COLUMN main.v_traffic.left_out_count IS 'Readings between the two that do not count: another one has the same time, or they are from before the latest.';
COMMENT ON COLUMN main.v_traffic.step_count IS 'Counts between the two, wraps undone. NULL: the counter began again.';
COMMENT ON COLUMN main.v_traffic.interval_bytes IS 'Bytes between the two, wraps undone. NULL: the counter began again, or does not count bytes.';
COMMENT ON COLUMN main.v_traffic.bytes_per_second IS 'Rate between the two, one direction, of this counter alone. NULL: as interval_bytes.';
COMMENT ON COLUMN main.v_traffic.bits_per_second IS 'The same in bits.';
COMMENT ON COLUMN main.v_traffic.is_wrap IS 'Whether the counter passed its width and went on from 0.';
COMMENT ON COLUMN main.v_traffic.is_reset IS 'Whether the counter began again, so that the interval tells nothing.';
