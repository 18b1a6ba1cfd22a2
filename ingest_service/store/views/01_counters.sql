CREATE OR REPLACE VIEW main.v_counters AS
SELECT
    run_id,
    series_id,
    min(series_id) OVER (
        PARTITION BY run_id, node, boot_id, physical_port, device, port, metric, unit_bytes, counter_bits
    ) AS counter_id,
    min(series_id) OVER (PARTITION BY run_id, node, boot_id, effective_port, metric) AS port_id,
    writer_id,
    node,
    boot_id,
    effective_port AS physical_port,
    device_name,
    metric,
    unit_bytes,
    counter_bits
FROM (
    SELECT *, coalesce(nullif(physical_port, ''), device_name) AS effective_port
    FROM (SELECT *, CASE WHEN port > 0 THEN concat(device, '/', port) ELSE device END AS device_name FROM main.series)
)
WHERE counter_bits > 0;
COMMENT ON VIEW main.v_counters IS 'Series of counters, without gauges, with what they have in common: those of several writers that read the same counter have one counter_id, those of the devices and functions of one physical port one port_id.';
COMMENT ON COLUMN main.v_counters.run_id IS 'The run.';
COMMENT ON COLUMN main.v_counters.series_id IS 'The series.';
COMMENT ON COLUMN main.v_counters.counter_id IS 'The counter: the lowest of its series.';
COMMENT ON COLUMN main.v_counters.port_id IS 'The physical port and what is counted there: the lowest of its series.';
COMMENT ON COLUMN main.v_counters.writer_id IS 'Writer that appends the series.';
COMMENT ON COLUMN main.v_counters.node IS 'Host that reads it.';
COMMENT ON COLUMN main.v_counters.boot_id IS 'Boot of the node; monotonic times of two boots do not compare. Empty where not known.';
COMMENT ON COLUMN main.v_counters.physical_port IS 'The physical port; the device with its port where nobody names one.';
COMMENT ON COLUMN main.v_counters.device_name IS 'The device with its port: mlx5_0/1, eth0.';
COMMENT ON COLUMN main.v_counters.metric IS 'What is counted.';
COMMENT ON COLUMN main.v_counters.unit_bytes IS 'Bytes of one count; 0 where it does not count bytes.';
COMMENT ON COLUMN main.v_counters.counter_bits IS 'Bits after which the counter wraps: 32 or 64.';
