CREATE OR REPLACE VIEW main.v_phase_traffic AS
-- Made anew wherever it is used, so that a condition on the run goes into each: DuckDB reads the files of that run alone.
WITH clocked AS NOT MATERIALIZED (
    -- A moment at least, so that a request without tokens counts at its send.
    SELECT
        *,
        greatest(coalesce(last_token_ns, 0), coalesce(first_token_ns, 0), least(send_ns, 9223372036854775806) + 1)
            AS end_ns
    FROM main.v_requests
),
crowding AS (
    SELECT one.run_id, one.stored_index, count(*) AS overlapping_request_count
    FROM clocked AS one
    JOIN clocked AS other
        ON one.run_id = other.run_id
        AND one.node = other.node
        AND one.boot_id = other.boot_id
        AND other.send_ns < one.end_ns
        AND one.send_ns < other.end_ns
        AND one.stored_index != other.stored_index
        AND one.node != ''
    GROUP BY one.run_id, one.stored_index
),
rounds AS (
    SELECT
        run_id,
        subject,
        round_index,
        sum(prompt_tokens) AS prompt_tokens,
        min(send_ns) AS send_ns,
        max(first_token_ns) AS first_token_ns
    FROM clocked
    GROUP BY run_id, subject, round_index
    HAVING count(*) = count(first_token_ns) AND min((node, boot_id)) = max((node, boot_id))
),
phases AS (
    SELECT run_id, node, boot_id, stored_index, 'PREFILL' AS phase, send_ns AS start_ns, first_token_ns AS end_ns
    FROM clocked
    UNION ALL
    SELECT run_id, node, boot_id, stored_index, 'DECODE', first_token_ns, last_token_ns
    FROM clocked
    UNION ALL
    SELECT run_id, node, boot_id, stored_index, 'ROUND', rounds.send_ns, rounds.first_token_ns
    FROM clocked
    JOIN rounds USING (run_id, subject, round_index)
),
spans AS (
    SELECT run_id, node, boot_id, stored_index, phase, unnest([start_ns, end_ns]) AS edge_ns, unnest([-1, 1]) AS sign
    FROM phases
    WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL
),
-- Intervals and edges in one order of time: the last interval at or before an edge tells the counter there.
course AS (
    SELECT
        run_id, counter_id, start_ns AS at_ns, 0 AS rank, start_ns, end_ns, interval_ns, is_reset, interval_bytes,
        CASE WHEN is_reset THEN interval_ns ELSE 0 END AS unknown_ns,
        NULL::BIGINT AS stored_index, NULL::VARCHAR AS phase, NULL::INTEGER AS sign, NULL::INTEGER AS port_id
    FROM main.v_intervals
    UNION ALL
    SELECT
        spans.run_id, counters.counter_id, spans.edge_ns, 1, NULL, NULL, NULL, NULL, NULL,
        NULL,
        spans.stored_index, spans.phase, spans.sign, counters.port_id
    FROM spans
    JOIN main.v_port_counters AS counters USING (run_id, node, boot_id)
),
passed AS (
    SELECT
        run_id,
        counter_id,
        port_id,
        stored_index,
        phase,
        sign,
        at_ns,
        rank,
        sum(interval_bytes) OVER passing AS started_bytes,
        sum(unknown_ns) OVER passing AS started_unknown_ns,
        last_value(start_ns IGNORE NULLS) OVER passing AS start_ns,
        last_value(end_ns IGNORE NULLS) OVER passing AS end_ns,
        last_value(is_reset IGNORE NULLS) OVER passing AS is_reset,
        last_value(CASE WHEN rank = 0 THEN coalesce(interval_bytes, 0) END IGNORE NULLS) OVER passing AS interval_bytes
    FROM course
    WINDOW passing AS (
        PARTITION BY run_id, counter_id ORDER BY at_ns, rank ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
edges AS (
    SELECT
        *,
        coalesce(at_ns <= end_ns, false) AS is_covered,
        -- What the interval that the edge stands in has counted behind it.
        interval_bytes * ((end_ns - at_ns) / (end_ns - start_ns)) AS left_bytes,
        started_unknown_ns - CASE WHEN is_reset THEN end_ns - at_ns ELSE 0 END AS unknown_ns
    FROM passed
    WHERE rank = 1
),
of_counters AS (
    SELECT
        run_id,
        stored_index,
        port_id,
        counter_id,
        phase,
        CASE WHEN count(*) FILTER (is_covered) = 2 AND sum(sign * unknown_ns) = 0
            THEN coalesce(sum(sign * started_bytes), 0)::DOUBLE - sum(sign * left_bytes) END AS phase_bytes
    FROM edges
    GROUP BY run_id, stored_index, port_id, counter_id, phase
),
-- What one of the counters of a port does not cover is not known of the port.
of_ports AS (
    SELECT
        run_id,
        stored_index,
        port_id,
        CASE WHEN NOT bool_or(phase_bytes IS NULL) FILTER (phase = 'PREFILL')
            THEN sum(phase_bytes) FILTER (phase = 'PREFILL') END AS prefill_bytes,
        CASE WHEN NOT bool_or(phase_bytes IS NULL) FILTER (phase = 'DECODE')
            THEN sum(phase_bytes) FILTER (phase = 'DECODE') END AS decode_bytes,
        CASE WHEN NOT bool_or(phase_bytes IS NULL) FILTER (phase = 'ROUND')
            THEN sum(phase_bytes) FILTER (phase = 'ROUND') END AS round_prefill_bytes
    FROM of_counters
    GROUP BY run_id, stored_index, port_id
),
ports AS (
    SELECT DISTINCT run_id, port_id, node, boot_id, physical_port, metric FROM main.v_port_counters
)
SELECT
    clocked.run_id,
    clocked.subject,
    clocked.round_index,
    clocked.request_index,
    clocked.prompt_tokens,
    clocked.output_tokens,
    coalesce(ports.node, '') AS node,
    coalesce(ports.physical_port, '') AS physical_port,
    coalesce(ports.metric, '') AS metric,
    of_ports.prefill_bytes,
    of_ports.prefill_bytes * 8e9 / (clocked.first_token_ns - clocked.send_ns) AS prefill_bits_per_second,
    CASE WHEN crowding.overlapping_request_count IS NULL THEN of_ports.prefill_bytes / clocked.prompt_tokens END
        AS prefill_bytes_per_prompt_token,
    of_ports.decode_bytes,
    of_ports.decode_bytes * 8e9 / nullif(clocked.last_token_ns - clocked.first_token_ns, 0) AS decode_bits_per_second,
    coalesce(crowding.overlapping_request_count, 0) AS overlapping_request_count,
    of_ports.round_prefill_bytes / rounds.prompt_tokens AS round_prefill_bytes_per_prompt_token,
    clocked.stored_index
FROM clocked
LEFT JOIN ports
    ON ports.run_id = clocked.run_id AND ports.node = clocked.node AND ports.boot_id = clocked.boot_id
    AND clocked.send_ns IS NOT NULL
LEFT JOIN crowding
    ON crowding.run_id = clocked.run_id AND crowding.stored_index = clocked.stored_index
LEFT JOIN rounds
    ON rounds.run_id = clocked.run_id AND rounds.subject = clocked.subject
    AND rounds.round_index = clocked.round_index
LEFT JOIN of_ports
    ON of_ports.run_id = clocked.run_id AND of_ports.stored_index = clocked.stored_index
    AND of_ports.port_id = ports.port_id;
COMMENT ON VIEW main.v_phase_traffic IS 'Traffic from the send of each request to its last token, one row per request and counter of bytes of a physical port that shares its clock: node and boot are the same. Counters are read at the send, the first and the last token, straight between two readings.';
COMMENT ON COLUMN main.v_phase_traffic.run_id IS 'The run.';
COMMENT ON COLUMN main.v_phase_traffic.subject IS 'The test.';
COMMENT ON COLUMN main.v_phase_traffic.round_index IS 'Measured round, from 0; warm-up rounds are negative.';
COMMENT ON COLUMN main.v_phase_traffic.request_index IS 'Position of the request in the round, from 0.';
COMMENT ON COLUMN main.v_phase_traffic.prompt_tokens IS 'Tokens of the prompt.';
COMMENT ON COLUMN main.v_phase_traffic.output_tokens IS 'Tokens generated.';
COMMENT ON COLUMN main.v_phase_traffic.node IS 'Host whose counter it is. Empty, and physical_port and metric with it, where no counter of bytes shares the clock.';
COMMENT ON COLUMN main.v_phase_traffic.physical_port IS 'The physical port; the device with its port where nobody names one.';
COMMENT ON COLUMN main.v_phase_traffic.metric IS 'What is counted.';
COMMENT ON COLUMN main.v_phase_traffic.prefill_bytes IS 'Bytes from the send to the first token, one direction, the whole port. NULL: readings do not cover all of it, or no first token came.';
COMMENT ON COLUMN main.v_phase_traffic.prefill_bits_per_second IS 'Mean from the send to the first token. NULL: as prefill_bytes.';
COMMENT ON COLUMN main.v_phase_traffic.prefill_bytes_per_prompt_token IS 'prefill_bytes over the prompt. NULL: as prefill_bytes, or other requests overlap, whose bytes are not told apart.';
COMMENT ON COLUMN main.v_phase_traffic.decode_bytes IS 'Bytes from the first to the last token. NULL: readings do not cover all of it, or no last token came.';
COMMENT ON COLUMN main.v_phase_traffic.decode_bits_per_second IS 'Mean from the first to the last token. NULL: as decode_bytes, or both are one.';
COMMENT ON COLUMN main.v_phase_traffic.overlapping_request_count IS 'Other requests of the run that were under way between its send and its last token, on the same clock.';
COMMENT ON COLUMN main.v_phase_traffic.round_prefill_bytes_per_prompt_token IS 'Bytes of the whole round, from its first send to its last first token, over all its prompt tokens; the same for every request of the round. NULL: as prefill_bytes, for any of them, or they are of several clocks.';
COMMENT ON COLUMN main.v_phase_traffic.stored_index IS 'As in requests.';
