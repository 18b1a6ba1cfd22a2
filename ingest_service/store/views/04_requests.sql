CREATE OR REPLACE VIEW main.v_requests AS
SELECT
    run_id,
    subject,
    round_index,
    request_index,
    round_index < 0 AS is_warm_up,
    prompt_tokens,
    output_tokens,
    coalesce(first_chunk_tokens, 1) AS first_chunk_tokens,
    ttft_ns / 1e9 AS ttft_seconds,
    last_token_ns / 1e9 AS end_to_end_seconds,
    (last_token_ns - ttft_ns) / 1e9 AS decode_seconds,
    CASE WHEN output_tokens > coalesce(first_chunk_tokens, 1) AND last_token_ns > ttft_ns THEN
        (output_tokens - coalesce(first_chunk_tokens, 1)) / ((last_token_ns - ttft_ns) / 1e9)
    END AS decode_tokens_per_second,
    node,
    boot_id,
    send_ns,
    -- What 64 bits cannot say is not known.
    CASE WHEN ttft_ns <= 9223372036854775807 - send_ns THEN send_ns + ttft_ns END AS first_token_ns,
    CASE WHEN last_token_ns <= 9223372036854775807 - send_ns THEN send_ns + last_token_ns END AS last_token_ns,
    writer_id,
    sequence_number,
    record_index,
    stored_index
FROM main.requests;
COMMENT ON VIEW main.v_requests IS 'Requests with what people ask of them: time to the first token and speed after it.';
COMMENT ON COLUMN main.v_requests.run_id IS 'The run.';
COMMENT ON COLUMN main.v_requests.subject IS 'The test that it belongs to, such as P4.';
COMMENT ON COLUMN main.v_requests.round_index IS 'Measured round, from 0; warm-up rounds are negative.';
COMMENT ON COLUMN main.v_requests.request_index IS 'Position in the round, from 0.';
COMMENT ON COLUMN main.v_requests.is_warm_up IS 'Whether the round is for warming up, and counts in no result.';
COMMENT ON COLUMN main.v_requests.prompt_tokens IS 'Tokens of the prompt.';
COMMENT ON COLUMN main.v_requests.output_tokens IS 'Tokens generated.';
COMMENT ON COLUMN main.v_requests.first_chunk_tokens IS 'Tokens that came with the first chunk; 1 where the record does not say.';
COMMENT ON COLUMN main.v_requests.ttft_seconds IS 'Send to first generated token received. NULL: no token came.';
COMMENT ON COLUMN main.v_requests.end_to_end_seconds IS 'Send to last token received. NULL: it did not finish.';
COMMENT ON COLUMN main.v_requests.decode_seconds IS 'First to last token received. NULL: it did not finish.';
COMMENT ON COLUMN main.v_requests.decode_tokens_per_second IS 'Tokens after the first chunk over decode_seconds, of this request alone. NULL: it did not finish, or there are none.';
COMMENT ON COLUMN main.v_requests.node IS 'Host whose clocks these are. Empty where not known.';
COMMENT ON COLUMN main.v_requests.boot_id IS 'Boot of that host; monotonic times of two boots do not compare. Empty where not known.';
COMMENT ON COLUMN main.v_requests.send_ns IS 'When it was sent, CLOCK_MONOTONIC of that host. NULL: not known.';
COMMENT ON COLUMN main.v_requests.first_token_ns IS 'When its first token was received, on the same clock. NULL: not known, or no token came.';
COMMENT ON COLUMN main.v_requests.last_token_ns IS 'When its last token was received, on the same clock. NULL: not known, or it did not finish.';
COMMENT ON COLUMN main.v_requests.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN main.v_requests.sequence_number IS 'Number of the append that brought it; with writer_id and record_index it finds its rows of tokens.';
COMMENT ON COLUMN main.v_requests.record_index IS 'Position in that append, from 0.';
COMMENT ON COLUMN main.v_requests.stored_index IS 'As in requests.';
