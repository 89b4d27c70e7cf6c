-- What tenants and operators read. Nothing here writes or locks; each call sees one snapshot.
-- All of it is index probes, so a plan made once is right, and never worth compiling.

CREATE FUNCTION admission.balance(tenant text) RETURNS admission.balance
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT l.balance_micro, l.held_micro, l.available_micro,
               trim_scale(l.balance_micro / 1000000.0), trim_scale(l.held_micro / 1000000.0), trim_scale(l.available_micro / 1000000.0),
               trim_scale(l.balance_micro / p.credit_micro::numeric), trim_scale(l.held_micro / p.credit_micro::numeric),
               trim_scale(l.available_micro / p.credit_micro::numeric)
          FROM admission.tenant_load l CROSS JOIN admission.policy p
         WHERE l.tenant = balance.tenant
    $$;
COMMENT ON FUNCTION admission.balance(text) IS
'What a tenant owns, what is held for its open jobs and what it can spend, in micro-USD, USD and credits of policy.credit_micro; null for an unknown tenant. No locks.';

CREATE FUNCTION admission.status(tenant text, job_id uuid) RETURNS admission.job_status
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET jit = off
    AS $$
#variable_conflict use_column
DECLARE
    clock timestamptz := admission.clock();
    j     record;
    known bigint;       -- newest committed job_no: an open batch lies behind it
    ahead bigint;
    pace  interval;     -- between two starts of the tenant, lately
    place bigint;
    waits bigint;       -- starts of others that it waits for
    exact boolean;
    start timestamptz;
BEGIN
    SELECT v.*, r.tenant_id, r.model_id, r.held_micro, e.captured_micro, e.late_micro, d.available_at, m.paused_until,
           t.suspended_at IS NOT NULL OR NOT m.enabled OR (SELECT draining FROM admission.policy) AS halted
      INTO j
      FROM admission.job_record r
      JOIN admission.tenant t ON t.tenant_id = r.tenant_id
      JOIN admission.model m ON m.model_id = r.model_id
      JOIN admission.job v ON v.job_id = r.job_id
      LEFT JOIN admission.ended e ON e.tenant_id = r.tenant_id AND e.job_no = r.job_no
      LEFT JOIN admission.delayed d ON d.tenant_id = r.tenant_id AND d.job_no = r.job_no
     WHERE r.job_id = status.job_id AND t.tenant = status.tenant;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    IF j.state = 'queued' THEN
        known := (SELECT i.admitted FROM admission.intake i WHERE i.tenant_id = j.tenant_id ORDER BY i.intake_no DESC LIMIT 1);
        -- what claims take before it, in the lanes that may run and in those of its own model
        WITH lane AS MATERIALIZED (
            SELECT l.* FROM admission.lane l JOIN admission.model m ON m.model_id = l.model_id
             WHERE l.tenant_id = j.tenant_id AND l.priority >= j.priority
               AND (l.model_id = j.model_id OR m.enabled AND coalesce(m.paused_until <= clock, true))
        )
        SELECT count(*) INTO ahead
          FROM (SELECT
                  FROM lane l
                 CROSS JOIN (VALUES (1), (-1)) side (sign)
                 CROSS JOIN LATERAL (
                       SELECT FROM admission.queued q
                        WHERE q.tenant_id = l.tenant_id AND q.lane_no = l.lane_no * side.sign
                          AND q.job_no >= coalesce((SELECT h.head FROM admission.lane_head h
                                                     WHERE h.tenant_id = l.tenant_id AND h.lane_no = l.lane_no * side.sign
                                                     ORDER BY h.version DESC LIMIT 1), 0)
                          AND q.job_no <= CASE WHEN l.priority > j.priority THEN known ELSE j.job_no - 1 END
                        ORDER BY q.job_no LIMIT 1001) q
                UNION ALL
                SELECT
                  FROM (SELECT * FROM admission.delayed d
                         WHERE d.tenant_id = j.tenant_id AND d.available_at <= clock ORDER BY d.available_at LIMIT 1001) d
                  JOIN lane l ON l.lane_no = abs(d.lane_no)
                 WHERE l.priority > j.priority OR d.job_no < j.job_no
                 LIMIT 1001) a;
        exact := ahead <= 1000;
        IF NOT exact THEN
            ahead := greatest(ahead, j.job_no - 1 - coalesce((SELECT d.departed FROM admission.dispatch d
                                                               WHERE d.tenant_id = j.tenant_id ORDER BY d.dispatch_no DESC LIMIT 1), 0));
        END IF;
        place := ahead + 1;

        IF NOT j.halted THEN
            SELECT place - greatest(g.concurrency_limit - g.active_generation_jobs, 0) INTO waits FROM admission.generation_limits(status.tenant) g;
            SELECT (clock - min(d.at)) / nullif(count(*) FILTER (WHERE d.kind = 'claim'), 0) INTO pace
              FROM (SELECT * FROM admission.dispatch d WHERE d.tenant_id = j.tenant_id ORDER BY d.dispatch_no DESC LIMIT 64) d
             WHERE d.at > clock - interval '1 hour';
            IF waits <= 0 OR pace > '0' THEN
                start := nullif(greatest(clock + coalesce(pace, '0') * greatest(waits, 0), j.available_at, j.paused_until), 'infinity');
            END IF;
        END IF;
    END IF;

    RETURN (j.job_id, j.operation_key, j.model, j.state, j.stage, j.finished_at IS NOT NULL, j.state = 'completed',
            j.result -> 'public', j.error, place, exact, start,
            j.held_micro, coalesce(j.captured_micro + j.late_micro, 0),
            j.created_at, j.start_by, j.started_at, j.finished_at,
            CASE j.state WHEN 'processing' THEN interval '3 seconds'
                         WHEN 'queued' THEN least(greatest(start - clock, '2 seconds'), '30 seconds') END)::admission.job_status;
END $$;
COMMENT ON FUNCTION admission.status(text, uuid) IS
'One job as its tenant may see it; null if the tenant has no such job. Money in micro-USD. position counts the jobs that claims take before it, exact up to 1000 ahead; estimated_start: now if there is room, else by the tenant''s starts of the last hour, null when unknown; poll_after: when to ask again, null when terminal. Bounded work however long the queue is. No locks.';

CREATE FUNCTION admission.status_of(tenant text, operation_key text) RETURNS admission.job_status
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT s.*
          FROM admission.tenant t
          JOIN admission.job_record r ON r.tenant_id = t.tenant_id
         CROSS JOIN LATERAL admission.status(t.tenant, r.job_id) s
         WHERE t.tenant = status_of.tenant AND r.operation_key = status_of.operation_key
    $$;
COMMENT ON FUNCTION admission.status_of(text, text) IS
'The same as status(), by the operation key of the admission; null if there is no such job. No locks.';

CREATE FUNCTION admission.list_jobs(tenant text, state text DEFAULT NULL, after uuid DEFAULT NULL, max_jobs integer DEFAULT 100)
    RETURNS SETOF admission.job_status
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET jit = off
    AS $$
#variable_conflict use_column
DECLARE
    id    integer := (SELECT t.tenant_id FROM admission.tenant t WHERE t.tenant = list_jobs.tenant);
    known bigint  := (SELECT i.admitted FROM admission.intake i WHERE i.tenant_id = id ORDER BY i.intake_no DESC LIMIT 1);
    last  bigint  := 0;
BEGIN
    IF state <> ALL ('{queued,processing,completed,failed,canceled,expired}') THEN
        RAISE EXCEPTION 'invalid state "%"', state
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Use queued, processing, completed, failed, canceled, expired, or null for all.';
    ELSIF max_jobs IS NULL OR max_jobs < 1 OR max_jobs > 1000 THEN
        RAISE EXCEPTION 'invalid max_jobs %', coalesce(max_jobs::text, 'null')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for 1 to 1000 jobs at a time.';
    ELSIF after IS NOT NULL THEN
        last := (SELECT r.job_no FROM admission.job_record r WHERE r.job_id = list_jobs.after AND r.tenant_id = id);
        IF last IS NULL THEN
            RAISE EXCEPTION 'no job "%" of this tenant to go on after', after
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass the job_id of the last job of the page before.';
        END IF;
    END IF;

    RETURN QUERY
        SELECT s.*
          FROM ((SELECT e.job_no, e.job_id FROM admission.ended e
                  WHERE e.tenant_id = id AND e.job_no > last AND coalesce(e.state = list_jobs.state, true)
                    AND coalesce(list_jobs.state NOT IN ('queued', 'processing'), true)
                  ORDER BY e.job_no LIMIT max_jobs)
                UNION ALL
                (SELECT p.job_no, p.job_id FROM admission.processing p
                  WHERE p.tenant_id = id AND p.job_no > last AND coalesce(list_jobs.state = 'processing', true)
                  ORDER BY p.job_no LIMIT max_jobs)
                UNION ALL
                (SELECT d.job_no, d.job_id FROM admission.delayed d
                  WHERE d.tenant_id = id AND d.job_no > last AND coalesce(list_jobs.state = 'queued', true)
                  ORDER BY d.job_no LIMIT max_jobs)
                UNION ALL
                SELECT q.job_no, q.job_id
                  FROM admission.lane l
                 CROSS JOIN (VALUES (1), (-1)) side (sign)
                 CROSS JOIN LATERAL (
                       SELECT q.job_no, q.job_id FROM admission.queued q
                        WHERE q.tenant_id = id AND q.lane_no = l.lane_no * side.sign
                          AND q.job_no >= greatest(last + 1, (SELECT h.head FROM admission.lane_head h
                                                               WHERE h.tenant_id = id AND h.lane_no = l.lane_no * side.sign
                                                               ORDER BY h.version DESC LIMIT 1))
                          AND q.job_no <= known
                        ORDER BY q.job_no LIMIT max_jobs) q
                 WHERE l.tenant_id = id AND coalesce(list_jobs.state = 'queued', true)
                 ORDER BY job_no LIMIT max_jobs) page
         CROSS JOIN LATERAL admission.status(list_jobs.tenant, page.job_id) s
         ORDER BY page.job_no;
END $$;
COMMENT ON FUNCTION admission.list_jobs(text, text, uuid, integer) IS
'A page of a tenant''s jobs in order of admission, as status() shows them. state: only these (queued, processing, completed, failed, canceled, expired; null = all); after: the last job of the page before; max_jobs: 1 to 1000. No row for an unknown tenant. Errors: 22023. No locks.';

CREATE FUNCTION admission.job_history(job_id uuid)
    RETURNS TABLE (at timestamptz, event text, attempt integer, worker text, reason text, details jsonb)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET jit = off
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        WITH RECURSIVE job AS MATERIALIZED (
            SELECT r.job_id, r.tenant_id, r.job_no, r.created_at, r.operation_key, r.held_micro, r.would_be,
                   coalesce(e.previous_no, p.previous_no, d.previous_no, q.previous_no) AS newest_no,
                   coalesce(e.attempt, p.attempt) AS attempt,
                   coalesce(e.begun_at, p.begun_at) AS begun_at,
                   coalesce(e.submitted_at, p.submitted_at) AS submitted_at,
                   coalesce(e.unknown_since, p.unknown_since) AS unknown_since, p.unknown_reason,
                   coalesce(e.provider_job_id, p.provider_job_id) AS provider_job_id,
                   e.late_micro,
                   jsonb_build_object('state', e.state, 'captured_micro', e.captured_micro, 'released_micro', e.released_micro,
                                      'overage_micro', nullif(e.overage_micro, 0), 'unpriced', nullif(e.unpriced, false),
                                      'settlement_key', e.settlement_key) AS ending
              FROM admission.job_record r
              LEFT JOIN admission.ended e ON e.tenant_id = r.tenant_id AND e.job_no = r.job_no
              LEFT JOIN admission.processing p ON p.tenant_id = r.tenant_id AND p.job_no = r.job_no
              LEFT JOIN admission.delayed d ON d.tenant_id = r.tenant_id AND d.job_no = r.job_no
              LEFT JOIN admission.queued q ON q.tenant_id = r.tenant_id AND q.lane_no = -r.lane_no AND q.job_no = r.job_no
             WHERE r.job_id = job_history.job_id
        ), step AS (
            SELECT d.* FROM job j JOIN admission.dispatch d ON d.tenant_id = j.tenant_id AND d.dispatch_no = j.newest_no
            UNION ALL
            SELECT d.* FROM step s JOIN admission.dispatch d ON d.tenant_id = s.tenant_id AND d.dispatch_no = s.previous_no
        ), event (at, rank, event, attempt, worker, reason, details) AS (
            SELECT j.created_at, 0.0, 'admitted', NULL::integer, NULL, NULL,
                   jsonb_build_object('operation_key', j.operation_key, 'reserved_micro', j.held_micro, 'would_be', j.would_be)
              FROM job j
            UNION ALL
            SELECT s.at, s.dispatch_no, s.kind, s.attempt, s.worker, s.reason,
                   CASE WHEN s.kind IN ('cancel', 'expire', 'exhausted', 'settle') THEN j.ending
                        WHEN s.kind = 'late' THEN jsonb_build_object('captured_micro', j.late_micro)
                        ELSE '{}' END
              FROM step s CROSS JOIN job j
            UNION ALL
            SELECT c.at, (SELECT max(s.dispatch_no) FROM step s WHERE s.kind = 'claim') + c.rank, c.event, j.attempt, NULL, c.reason,
                   jsonb_build_object('provider_job_id', c.provider_job_id)
              FROM job j
             CROSS JOIN LATERAL (VALUES (j.begun_at, 0.1, 'begin_submission', NULL, NULL),
                                        (j.unknown_since, 0.2, 'report_unknown', j.unknown_reason, NULL),
                                        (j.submitted_at, 0.3, 'submitted', NULL, j.provider_job_id)) c (at, rank, event, reason, provider_job_id)
             WHERE c.at IS NOT NULL
               AND NOT EXISTS (SELECT FROM step s WHERE s.kind = 'unknown' AND s.at = c.at AND c.event = 'report_unknown')
            UNION ALL
            SELECT e.at, 1e18, e.code, e.attempt, NULL, NULL,
                   jsonb_build_object('outcome', e.outcome, 'actual_micro', e.actual_micro, 'settlement_key', e.settlement_key,
                                      'provider_job_id', e.provider_job_id, 'result', e.result)
              FROM job j JOIN admission.evidence e ON e.job_id = j.job_id
            UNION ALL
            SELECT b.at, 1e18, b.kind, NULL, NULL, b.reason, jsonb_build_object('amount_micro', b.amount_micro, 'reference', b.reference)
              FROM job j JOIN admission.billing b ON b.job_id = j.job_id
        )
        SELECT e.at, e.event, e.attempt, e.worker, e.reason,
               (SELECT coalesce(jsonb_object_agg(d.key, d.value), '{}') FROM jsonb_each(e.details) d WHERE d.value <> 'null')
          FROM event e
         ORDER BY e.at, e.rank;
END $$;
COMMENT ON FUNCTION admission.job_history(uuid) IS
'Everything known of one job, oldest first, for operators: admitted; the steps of the dispatch journal (claim, requeue, lost, unknown, overdue, cancel, expire, exhausted, settle, late); begin_submission, report_unknown and submitted of the current or last attempt; reports kept as evidence under their codes; refund. Money in micro-USD. No row for an unknown job. No locks.';

CREATE FUNCTION admission.events(tenant text, job_id uuid)
    RETURNS TABLE (at timestamptz, event text, attempt integer, details jsonb)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT h.at, coalesce(p.shown, h.details ->> 'state'), h.attempt,
               (SELECT coalesce(jsonb_object_agg(d.key, d.value), '{}') FROM jsonb_each(h.details) d
                 WHERE d.key IN ('reserved_micro', 'captured_micro', 'released_micro', 'amount_micro'))
          FROM admission.tenant t
          JOIN admission.job_record r ON r.tenant_id = t.tenant_id
         CROSS JOIN LATERAL admission.job_history(r.job_id) WITH ORDINALITY h
          JOIN (VALUES ('admitted', 'accepted'), ('claim', 'started'), ('requeue', 'requeued'), ('lost', 'requeued'),
                       ('cancel', 'canceled'), ('expire', 'expired'), ('exhausted', 'failed'), ('settle', NULL),
                       ('late', 'late_capture'), ('refund', 'refunded')) p (event, shown) ON p.event = h.event
         WHERE t.tenant = events.tenant AND r.job_id = events.job_id
         ORDER BY h.ordinality
    $$;
COMMENT ON FUNCTION admission.events(text, uuid) IS
'The public history of a job, oldest first: accepted, started, requeued, completed, failed, canceled, expired, late_capture, refunded; details hold amounts in micro-USD. Nothing of workers, providers or private reasons. No row if the tenant has no such job. No locks.';

CREATE FUNCTION admission.first_dispatch_since(tenant_id integer, since timestamptz) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    low    bigint := 1;
    high   bigint := 1 + coalesce((SELECT d.dispatch_no FROM admission.dispatch d
                                    WHERE d.tenant_id = first_dispatch_since.tenant_id ORDER BY d.dispatch_no DESC LIMIT 1), 0);
    middle bigint;
BEGIN
    WHILE low < high LOOP
        middle := (low + high) / 2;
        IF (SELECT d.at FROM admission.dispatch d WHERE d.tenant_id = first_dispatch_since.tenant_id AND d.dispatch_no = middle) < since THEN
            low := middle + 1;
        ELSE
            high := middle;
        END IF;
    END LOOP;
    RETURN low;
END $$;
COMMENT ON FUNCTION admission.first_dispatch_since(integer, timestamptz) IS
'Internal: the number of a tenant''s first dispatch row at or after a time, found by halving the gap-free journal; one past the newest if there is none. No locks.';

CREATE FUNCTION admission.statement(tenant text, since timestamptz DEFAULT '-infinity', until timestamptz DEFAULT 'infinity')
    RETURNS TABLE (at timestamptz, kind text, amount_micro bigint, balance_micro bigint, reference text, job_id uuid, reason text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET jit = off
    AS $$
        WITH account AS MATERIALIZED (
            SELECT t.tenant_id, admission.first_dispatch_since(t.tenant_id, coalesce(since, '-infinity')) AS first_no,
                   admission.first_dispatch_since(t.tenant_id, coalesce(until, 'infinity')) AS end_no
              FROM admission.tenant t WHERE t.tenant = statement.tenant
        ), capture AS (
            SELECT d.*, d.captured_micro - lag(d.captured_micro, 1, 0::bigint) OVER (ORDER BY d.dispatch_no) AS amount_micro
              FROM account a
              JOIN admission.dispatch d ON d.tenant_id = a.tenant_id AND d.dispatch_no >= a.first_no - 1 AND d.dispatch_no < a.end_no
        ), entry (at, journal, no, kind, amount_micro, reference, job_id, reason) AS (
            SELECT b.at, 1, b.billing_no, b.kind, b.amount_micro, b.reference, b.job_id, b.reason
              FROM account a JOIN admission.billing b ON b.tenant_id = a.tenant_id
             WHERE b.at >= coalesce(since, '-infinity') AND b.at < coalesce(until, 'infinity')
            UNION ALL
            SELECT c.at, 2, c.dispatch_no, CASE WHEN c.kind = 'late' THEN 'late_capture' ELSE 'capture' END, -c.amount_micro, NULL, c.job_id, c.reason
              FROM account a JOIN capture c ON c.dispatch_no >= a.first_no
             WHERE c.amount_micro <> 0
        ), opening AS (
            SELECT coalesce((SELECT sum(b.amount_micro) FROM admission.billing b WHERE b.tenant_id = a.tenant_id AND b.at < coalesce(since, '-infinity')), 0)
                 - coalesce((SELECT d.captured_micro FROM admission.dispatch d WHERE d.tenant_id = a.tenant_id AND d.dispatch_no = a.first_no - 1), 0) AS balance_micro
              FROM account a
        )
        SELECT e.at, e.kind, e.amount_micro,
               (o.balance_micro + sum(e.amount_micro) OVER (ORDER BY e.at, e.journal, e.no))::bigint,
               e.reference, e.job_id, e.reason
          FROM entry e CROSS JOIN opening o
         ORDER BY e.at, e.journal, e.no
    $$;
COMMENT ON FUNCTION admission.statement(text, timestamptz, timestamptz) IS
'A tenant''s ledger from since to before until, oldest first: top_up, plan, grant, refund, reversal, adjustment as booked, capture and late_capture as negative amounts, each with the balance after it, in micro-USD. Periods that meet neither miss nor repeat an entry. No row for an unknown tenant. No locks.';

CREATE FUNCTION admission.tier_timeline(tenant text, as_of timestamptz DEFAULT NULL)
    RETURNS TABLE (reference text, topped_up_at timestamptz, counted_micro bigint, leaves_at timestamptz,
                   purchased_concurrency_limit integer, top_up_to_keep_micro bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
        WITH instant AS MATERIALIZED (
            SELECT coalesce(as_of, admission.clock()) AS now
        ), counted AS (
            SELECT b.reference, c.at, c.amount_micro - c.reversed_micro AS counted_micro, c.at + p.top_up_window AS leaves_at,
                   sum(c.amount_micro - c.reversed_micro) OVER () AS total_micro,
                   coalesce(sum(c.amount_micro - c.reversed_micro)
                       OVER (ORDER BY c.at GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), 0) AS left_micro
              FROM instant i CROSS JOIN admission.policy p
              JOIN admission.tenant t ON t.tenant = tier_timeline.tenant
              JOIN admission.counted_top_up c ON c.tenant_id = t.tenant_id AND c.at > i.now - p.top_up_window AND c.at <= i.now
              JOIN admission.billing b ON b.tenant_id = c.tenant_id AND b.billing_no = c.billing_no
             WHERE c.amount_micro > c.reversed_micro
        )
        SELECT c.reference, c.at, c.counted_micro, c.leaves_at,
               coalesce((SELECT k.concurrency FROM admission.concurrency_tier k
                          WHERE k.min_top_up_micro <= c.left_micro ORDER BY k.min_top_up_micro DESC LIMIT 1), 0),
               greatest(0, (SELECT min(k.min_top_up_micro) FROM admission.concurrency_tier k
                             WHERE k.concurrency >= (SELECT n.concurrency FROM admission.concurrency_tier n
                                                      WHERE n.min_top_up_micro <= c.total_micro ORDER BY n.min_top_up_micro DESC LIMIT 1))
                           - c.left_micro)::bigint
          FROM counted c
         ORDER BY c.leaves_at, c.reference
    $$;
COMMENT ON FUNCTION admission.tier_timeline(text, timestamptz) IS
'Each top-up that counts at as_of (null: now), less its reversals, and when it leaves the window; the purchased concurrency limit from then on if nothing is bought, and the smallest top-up (micro-USD) that keeps the limit of as_of then. No row if none counts. No locks.';
