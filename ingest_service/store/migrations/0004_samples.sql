CREATE SEQUENCE hot.series_ids;
COMMENT ON SEQUENCE hot.series_ids IS 'Ids of series. None is given twice, also after its run was deleted.';

CREATE TABLE hot.series (
    series_id INTEGER PRIMARY KEY,
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    port INTEGER NOT NULL,
    unit_bytes INTEGER NOT NULL,
    counter_bits INTEGER NOT NULL,
    boot_id VARCHAR NOT NULL,
    physical_port VARCHAR NOT NULL
);
COMMENT ON TABLE hot.series IS 'Counters and gauges that sample streams carry, one row per run, writer and descriptor.';
COMMENT ON COLUMN hot.series.series_id IS 'Number of the series in this store, never given twice.';
COMMENT ON COLUMN hot.series.run_id IS 'The run.';
COMMENT ON COLUMN hot.series.writer_id IS 'Writer that appends it.';
COMMENT ON COLUMN hot.series.metric IS 'What is read, as the system names it: port_xmit_data.';
COMMENT ON COLUMN hot.series.node IS 'Host that reads it.';
COMMENT ON COLUMN hot.series.device IS 'Device: mlx5_0, eth0. Empty where there is none.';
COMMENT ON COLUMN hot.series.port IS 'Port of the device, from 1; 0 where it has none.';
COMMENT ON COLUMN hot.series.unit_bytes IS 'Bytes of one count; 0 where it does not count bytes.';
COMMENT ON COLUMN hot.series.counter_bits IS 'Bits after which the counter wraps: 32 or 64; 0 for a gauge.';
COMMENT ON COLUMN hot.series.boot_id IS 'Boot of the node; monotonic times of two boots do not compare. Empty where not known.';
COMMENT ON COLUMN hot.series.physical_port IS 'Physical port that several functions of the node share. Empty: the device and its port are one.';

CREATE TABLE hot.counter_samples (
    series_id INTEGER NOT NULL,
    time_ns BIGINT NOT NULL,
    value BIGINT NOT NULL,
    read_duration_ns BIGINT
);
COMMENT ON TABLE hot.counter_samples IS 'Raw readings, in the order in which they were committed.';
COMMENT ON COLUMN hot.counter_samples.series_id IS 'The series.';
COMMENT ON COLUMN hot.counter_samples.time_ns IS 'CLOCK_MONOTONIC of the node before the read.';
COMMENT ON COLUMN hot.counter_samples.value IS 'The reading as it is; series.unit_bytes gives its unit.';
COMMENT ON COLUMN hot.counter_samples.read_duration_ns IS 'How long the read took. NULL: not known.';
