CREATE OR REPLACE VIEW main.v_port_counters AS
SELECT * EXCLUDE (place)
FROM (
    SELECT
        *,
        CASE WHEN suffix(metric, '_phy') THEN
            row_number() OVER (
                PARTITION BY run_id, port_id, suffix(metric, '_phy')
                ORDER BY sample_count DESC, device_name, unit_bytes
            )
        ELSE 1 END AS place
    FROM (
        SELECT
            run_id, counter_id, any_value(port_id) AS port_id, any_value(node) AS node, any_value(boot_id) AS boot_id,
            any_value(physical_port) AS physical_port, any_value(device_name) AS device_name,
            any_value(metric) AS metric, any_value(unit_bytes) AS unit_bytes,
            sum(coalesce(of_series.sample_count, 0))::BIGINT AS sample_count
        FROM main.v_counters
        LEFT JOIN (
            SELECT run_id, series_id, count(*) AS sample_count FROM main.counter_samples GROUP BY run_id, series_id
        ) AS of_series USING (run_id, series_id)
        WHERE unit_bytes > 0
        GROUP BY run_id, counter_id
    )
)
WHERE place = 1 AND sample_count > 0;
COMMENT ON VIEW main.v_port_counters IS 'Counters of bytes that make up the traffic of a physical port: those of all its devices and functions; of counters whose name ends in _phy, which count the whole port at each of its functions, the one with most readings. Those without readings are left out.';
COMMENT ON COLUMN main.v_port_counters.run_id IS 'The run.';
COMMENT ON COLUMN main.v_port_counters.counter_id IS 'The counter; see v_counters.';
COMMENT ON COLUMN main.v_port_counters.port_id IS 'The physical port and what is counted there; see v_counters.';
COMMENT ON COLUMN main.v_port_counters.node IS 'Host that reads it.';
COMMENT ON COLUMN main.v_port_counters.boot_id IS 'Boot of the node; monotonic times of two boots do not compare. Empty where not known.';
COMMENT ON COLUMN main.v_port_counters.physical_port IS 'The physical port; the device with its port where nobody names one.';
COMMENT ON COLUMN main.v_port_counters.device_name IS 'The device with its port: mlx5_0/1, eth0.';
COMMENT ON COLUMN main.v_port_counters.metric IS 'What is counted.';
COMMENT ON COLUMN main.v_port_counters.unit_bytes IS 'Bytes of one count.';
COMMENT ON COLUMN main.v_port_counters.sample_count IS 'Readings of the counter.';

CREATE OR REPLACE MACRO main.all_windows(width) AS TABLE
WITH given AS (
    SELECT CASE WHEN asked_ns > 0 THEN asked_ns ELSE error('the width of a window is above 0') END AS window_ns
    FROM (
        SELECT coalesce(
            round(try_cast(width::VARCHAR AS DOUBLE) * 1e9)::BIGINT,
            epoch_us(try_cast(width::VARCHAR AS INTERVAL)) * 1000,
            error('the width of a window is an INTERVAL or seconds')
        ) AS asked_ns
    )
),
touched AS (
    SELECT
        intervals.run_id,
        intervals.port_id,
        intervals.start_ns,
        intervals.end_ns,
        intervals.interval_ns,
        intervals.interval_bytes,
        given.window_ns,
        unnest(range(intervals.start_ns // given.window_ns, (intervals.end_ns - 1) // given.window_ns + 1))
            AS window_number
    FROM main.v_intervals AS intervals
    JOIN main.v_port_counters AS counted USING (run_id, counter_id)
    CROSS JOIN given
),
shares AS (
    SELECT
        run_id,
        port_id,
        window_ns,
        window_number,
        interval_ns,
        interval_bytes,
        least(end_ns - window_number * window_ns, window_ns) - greatest(start_ns - window_number * window_ns, 0)
            AS inside_ns
    FROM touched
),
sums AS (
    SELECT
        run_id,
        port_id,
        window_ns,
        window_number,
        sum(CASE WHEN interval_bytes IS NULL THEN 0.0 ELSE interval_bytes * (inside_ns / interval_ns) END)
            AS window_bytes,
        sum(CASE WHEN interval_bytes IS NULL THEN 0 ELSE inside_ns END)::BIGINT AS covered_ns
    FROM shares
    GROUP BY run_id, port_id, window_ns, window_number
)
SELECT
    run_id,
    ports.node,
    ports.boot_id,
    ports.physical_port,
    ports.metric,
    sums.window_ns,
    sums.window_number * sums.window_ns AS start_ns,
    sums.window_bytes,
    sums.window_bytes * 8e9 / sums.window_ns AS bits_per_second,
    sums.covered_ns / (sums.window_ns * ports.counter_count) AS covered_fraction
FROM sums
JOIN (
    SELECT
        run_id,
        port_id,
        any_value(node) AS node,
        any_value(boot_id) AS boot_id,
        any_value(physical_port) AS physical_port,
        any_value(metric) AS metric,
        count(*) AS counter_count
    FROM main.v_port_counters
    GROUP BY run_id, port_id
) AS ports USING (run_id, port_id);
COMMENT ON MACRO TABLE main.all_windows IS 'Bytes and rates of all runs over windows of one width, an INTERVAL or seconds; see windows, which is that of one run.';

CREATE OR REPLACE MACRO main.windows(run, width) AS TABLE
SELECT * FROM all_windows(width) WHERE run_id = run;
COMMENT ON MACRO TABLE main.windows IS 'Bytes and rates of one run over windows of one width, an INTERVAL or seconds: windows(''my-run'', INTERVAL ''20 ms''). One row per node, physical port, counter of bytes and window. Windows start at whole multiples of the width on the clock of the node; each interval between two readings spreads its bytes evenly over the windows that it touches, which is exact for windows that are no shorter than the intervals.';

CREATE OR REPLACE VIEW main.v_windows_1ms AS FROM all_windows(INTERVAL '1 ms');
COMMENT ON VIEW main.v_windows_1ms IS 'Bytes and rates over windows of 1 ms; see windows.';
CREATE OR REPLACE VIEW main.v_windows_5ms AS FROM all_windows(INTERVAL '5 ms');
COMMENT ON VIEW main.v_windows_5ms IS 'Bytes and rates over windows of 5 ms; see windows.';
CREATE OR REPLACE VIEW main.v_windows_100ms AS FROM all_windows(INTERVAL '100 ms');
COMMENT ON VIEW main.v_windows_100ms IS 'Bytes and rates over windows of 100 ms; see windows.';
CREATE OR REPLACE VIEW main.v_windows_1s AS FROM all_windows(INTERVAL '1 s');
COMMENT ON VIEW main.v_windows_1s IS 'Bytes and rates over windows of 1 s; see windows.';

COMMENT ON COLUMN main.v_windows_1ms.run_id IS 'The run.';
COMMENT ON COLUMN main.v_windows_1ms.node IS 'Host whose clock and counters these are.';
COMMENT ON COLUMN main.v_windows_1ms.boot_id IS 'Boot of the node; monotonic times of two boots do not compare. Empty where not known.';
COMMENT ON COLUMN main.v_windows_1ms.physical_port IS 'The physical port; the device with its port where nobody names one.';
COMMENT ON COLUMN main.v_windows_1ms.metric IS 'What is counted.';
COMMENT ON COLUMN main.v_windows_1ms.window_ns IS 'Width of the window.';
COMMENT ON COLUMN main.v_windows_1ms.start_ns IS 'Start of the window, CLOCK_MONOTONIC of the node.';
COMMENT ON COLUMN main.v_windows_1ms.window_bytes IS 'Bytes within the window, all devices and functions of the port together, one direction.';
COMMENT ON COLUMN main.v_windows_1ms.bits_per_second IS 'window_bytes over the width; time that no reading covers counts as silent.';
COMMENT ON COLUMN main.v_windows_1ms.covered_fraction IS 'Share of the window that readings cover, the mean over the counters of the port: less than 1 at both ends and where counters began again.';
COMMENT ON COLUMN main.v_windows_5ms.run_id IS 'The run.';
COMMENT ON COLUMN main.v_windows_5ms.node IS 'Host whose clock and counters these are.';
COMMENT ON COLUMN main.v_windows_5ms.boot_id IS 'Boot of the node; monotonic times of two boots do not compare. Empty where not known.';
COMMENT ON COLUMN main.v_windows_5ms.physical_port IS 'The physical port; the device with its port where nobody names one.';
COMMENT ON COLUMN main.v_windows_5ms.metric IS 'What is counted.';
COMMENT ON COLUMN main.v_windows_5ms.window_ns IS 'Width of the window.';
COMMENT ON COLUMN main.v_windows_5ms.start_ns IS 'Start of the window, CLOCK_MONOTONIC of the node.';
COMMENT ON COLUMN main.v_windows_5ms.window_bytes IS 'Bytes within the window, all devices and functions of the port together, one direction.';
COMMENT ON COLUMN main.v_windows_5ms.bits_per_second IS 'window_bytes over the width; time that no reading covers counts as silent.';
COMMENT ON COLUMN main.v_windows_5ms.covered_fraction IS 'Share of the window that readings cover, the mean over the counters of the port: less than 1 at both ends and where counters began again.';
COMMENT ON COLUMN main.v_windows_100ms.run_id IS 'The run.';
COMMENT ON COLUMN main.v_windows_100ms.node IS 'Host whose clock and counters these are.';
COMMENT ON COLUMN main.v_windows_100ms.boot_id IS 'Boot of the node; monotonic times of two boots do not compare. Empty where not known.';
COMMENT ON COLUMN main.v_windows_100ms.physical_port IS 'The physical port; the device with its port where nobody names one.';
COMMENT ON COLUMN main.v_windows_100ms.metric IS 'What is counted.';
COMMENT ON COLUMN main.v_windows_100ms.window_ns IS 'Width of the window.';
COMMENT ON COLUMN main.v_windows_100ms.start_ns IS 'Start of the window, CLOCK_MONOTONIC of the node.';
COMMENT ON COLUMN main.v_windows_100ms.window_bytes IS 'Bytes within the window, all devices and functions of the port together, one direction.';
COMMENT ON COLUMN main.v_windows_100ms.bits_per_second IS 'window_bytes over the width; time that no reading covers counts as silent.';
COMMENT ON COLUMN main.v_windows_100ms.covered_fraction IS 'Share of the window that readings cover, the mean over the counters of the port: less than 1 at both ends and where counters began again.';
COMMENT ON COLUMN main.v_windows_1s.run_id IS 'The run.';
COMMENT ON COLUMN main.v_windows_1s.node IS 'Host whose clock and counters these are.';
COMMENT ON COLUMN main.v_windows_1s.boot_id IS 'Boot of the node; monotonic times of two boots do not compare. Empty where not known.';
COMMENT ON COLUMN main.v_windows_1s.physical_port IS 'The physical port; the device with its port where nobody names one.';
COMMENT ON COLUMN main.v_windows_1s.metric IS 'What is counted.';
COMMENT ON COLUMN main.v_windows_1s.window_ns IS 'Width of the window.';
COMMENT ON COLUMN main.v_windows_1s.start_ns IS 'Start of the window, CLOCK_MONOTONIC of the node.';
COMMENT ON COLUMN main.v_windows_1s.window_bytes IS 'Bytes within the window, all devices and functions of the port together, one direction.';
COMMENT ON COLUMN main.v_windows_1s.bits_per_second IS 'window_bytes over the width; time that no reading covers counts as silent.';
COMMENT ON COLUMN main.v_windows_1s.covered_fraction IS 'Share of the window that readings cover, the mean over the counters of the port: less than 1 at both ends and where counters began again.';
