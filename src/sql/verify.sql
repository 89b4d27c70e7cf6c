-- Proof of the invariants, from one snapshot.

CREATE FUNCTION admission.verify() RETURNS SETOF admission.discrepancy
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_nestloop = off SET jit = off
    AS $$
WITH instant AS MATERIALIZED (
    SELECT admission.clock() AS now
), place AS (
    SELECT tenant_id, job_no, job_id, 'queued' AS state, abs(lane_no) AS lane_no, attempt, previous_no, start_by, held_micro,
           0::bigint AS captured_micro, 0::bigint AS late_micro FROM admission.queued
    UNION ALL
    SELECT tenant_id, job_no, job_id, 'queued', abs(lane_no), attempt, previous_no, start_by, held_micro, 0, 0 FROM admission.delayed
    UNION ALL
    SELECT tenant_id, job_no, job_id, 'processing', abs(lane_no), attempt, previous_no, start_by, held_micro, 0, 0 FROM admission.processing
    UNION ALL
    SELECT tenant_id, job_no, job_id, 'ended', NULL, attempt, previous_no, NULL, NULL, captured_micro, late_micro FROM admission.ended
), job AS MATERIALIZED (
    -- what was accepted (r_), and where it is
    SELECT coalesce(r.tenant_id, p.tenant_id) AS tenant_id, coalesce(r.job_no, p.job_no) AS job_no, p.job_id, p.state,
           p.lane_no, p.attempt, p.previous_no, p.start_by, p.held_micro, p.captured_micro, p.late_micro,
           r.job_id AS r_job_id, r.lane_no AS r_lane_no, r.start_by AS r_start_by, r.held_micro AS r_held_micro, r.priority, r.model_id
      FROM admission.job_record r
      FULL JOIN place p ON p.tenant_id = r.tenant_id AND p.job_no = r.job_no
), intake AS (
    SELECT i.*, i.intake_no - lag(i.intake_no, 1, 0::bigint) OVER w AS step,
           i.admitted - lag(i.admitted, 1, 0::bigint) OVER w AS d_admitted,
           i.reserved_micro - lag(i.reserved_micro, 1, 0::bigint) OVER w AS d_reserved
      FROM admission.intake i WINDOW w AS (PARTITION BY i.tenant_id ORDER BY i.intake_no)
), billing AS (
    SELECT b.*, b.billing_no - lag(b.billing_no, 1, 0::bigint) OVER w AS step,
           b.credited_micro - lag(b.credited_micro, 1, 0::bigint) OVER w AS d_credited
      FROM admission.billing b WINDOW w AS (PARTITION BY b.tenant_id ORDER BY b.billing_no)
), dispatch AS (
    SELECT d.*, d.dispatch_no - lag(d.dispatch_no, 1, 0::bigint) OVER w AS step,
           d.departed - lag(d.departed, 1, 0::bigint) OVER w AS d_departed,
           d.concluded - lag(d.concluded, 1, 0::bigint) OVER w AS d_concluded,
           d.active - lag(d.active, 1, 0::bigint) OVER w AS d_active,
           d.unreserved_micro - lag(d.unreserved_micro, 1, 0::bigint) OVER w AS d_unreserved,
           d.captured_micro - lag(d.captured_micro, 1, 0::bigint) OVER w AS d_captured,
           d.kind IN ('cancel', 'expire', 'exhausted', 'settle') AS ends,
           lag(d.dispatch_no, 1, 0::bigint) OVER j AS before_no, lag(d.attempt, 1, 0) OVER j AS before_attempt,
           lag(d.kind, 1, 'admitted') OVER j AS before, lead(d.dispatch_no) OVER j IS NULL AS is_newest
      FROM admission.dispatch d
    WINDOW w AS (PARTITION BY d.tenant_id ORDER BY d.dispatch_no), j AS (PARTITION BY d.tenant_id, d.job_no ORDER BY d.dispatch_no)
), step AS MATERIALIZED (
    -- each step of a job with the job; before: what came before it in the job's life
    SELECT d.*, d.before IN ('cancel', 'expire', 'exhausted', 'settle', 'late') AS was_over,
           d.before IN ('claim', 'unknown', 'overdue') AS was_processing,
           j.r_job_id, j.r_held_micro, j.captured_micro AS job_captured_micro, j.late_micro,
           j.state, j.attempt AS job_attempt, j.previous_no AS job_previous_no
      FROM dispatch d
      LEFT JOIN job j ON j.tenant_id = d.tenant_id AND j.job_no = d.job_no
), acceptance AS (
    SELECT i.*, d.dispatch_no IS NULL AND i.dispatch_no > 0 OR b.billing_no IS NULL AND i.billing_no > 0 AS unfounded,
           i.admitted - coalesce(d.concluded, 0) AS outstanding,
           coalesce(b.credited_micro, 0) - coalesce(d.captured_micro, 0) - i.reserved_micro + coalesce(d.unreserved_micro, 0) AS available_micro
      FROM admission.intake i
      LEFT JOIN admission.dispatch d ON d.tenant_id = i.tenant_id AND d.dispatch_no = i.dispatch_no
      LEFT JOIN admission.billing b ON b.tenant_id = i.tenant_id AND b.billing_no = i.billing_no
), newest AS MATERIALIZED (
    SELECT t.tenant_id, t.tenant, t.suspended_at,
           coalesce(i.admitted, 0) AS admitted, coalesce(i.reserved_micro, 0) AS reserved_micro,
           coalesce(d.departed, 0) AS departed, coalesce(d.concluded, 0) AS concluded, coalesce(d.active, 0) AS active,
           coalesce(d.unreserved_micro, 0) AS unreserved_micro, coalesce(d.captured_micro, 0) AS captured_micro,
           coalesce(d.saturated, false) AS saturated
      FROM admission.tenant t
      LEFT JOIN LATERAL (SELECT * FROM admission.intake i WHERE i.tenant_id = t.tenant_id ORDER BY i.intake_no DESC LIMIT 1) i ON true
      LEFT JOIN LATERAL (SELECT * FROM admission.dispatch d WHERE d.tenant_id = t.tenant_id ORDER BY d.dispatch_no DESC LIMIT 1) d ON true
), summed AS (
    -- the same totals, from the jobs
    SELECT tenant_id, count(*) AS jobs, sum(r_held_micro) AS reserved_micro,
           count(*) FILTER (WHERE state = 'queued') AS queued,
           count(*) FILTER (WHERE state = 'processing') AS active,
           count(*) FILTER (WHERE state = 'ended') AS concluded,
           coalesce(sum(held_micro), 0) AS held_micro, sum(captured_micro + late_micro) AS captured_micro
      FROM job GROUP BY tenant_id
), due AS (
    -- when each tenant will be looked at: now if it stands on the ring
    SELECT tenant_id, min(at) AS at
      FROM (SELECT tenant_id, at FROM admission.due UNION ALL SELECT tenant_id, '-infinity' FROM admission.ring) d
     GROUP BY tenant_id
), ready AS (
    -- since when each tenant has a job that may start, were there room
    SELECT q.tenant_id, min(greatest(m.paused_until, '-infinity')) AS at
      FROM (SELECT DISTINCT tenant_id, abs(lane_no) AS lane_no FROM admission.queued) q
      JOIN admission.lane l ON l.tenant_id = q.tenant_id AND l.lane_no = q.lane_no
      JOIN admission.model m ON m.model_id = l.model_id AND m.enabled
     GROUP BY q.tenant_id
), stripe AS (
    SELECT DISTINCT ON (pool_id, stripe) * FROM admission.pool_stripe ORDER BY pool_id, stripe, version
), pool AS (
    SELECT (SELECT capacity FROM admission.pool WHERE pool_id = 1) AS capacity,
           (SELECT coalesce(sum(tokens), 0) FROM stripe WHERE pool_id = 1) AS free,
           (SELECT coalesce(sum(admitted - concluded), 0) FROM newest) AS outstanding,
           (SELECT global_outstanding_cap FROM admission.policy) AS policy
), found (what, tenant_id, job_id, details) AS (

    -- journals: gap free, each total the one before plus the row's own change, each step of a job one that may follow

    SELECT 'intake_journal', i.tenant_id, NULL::uuid, to_jsonb(i)
      FROM intake i WHERE (i.step, i.d_admitted, i.d_reserved) IS DISTINCT FROM (1, i.jobs, i.amount_micro)
    UNION ALL
    SELECT 'billing_journal', b.tenant_id, b.job_id, to_jsonb(b)
      FROM billing b WHERE (b.step, b.d_credited) IS DISTINCT FROM (1, b.amount_micro)
    UNION ALL
    SELECT 'dispatch_journal', s.tenant_id, s.job_id, to_jsonb(s)
      FROM step s
     WHERE (s.step, s.d_departed, s.d_concluded, s.d_active, s.d_unreserved, s.d_captured) IS DISTINCT FROM
           (1,
            CASE WHEN s.kind = 'claim' OR s.ends AND NOT s.was_processing THEN 1 WHEN s.kind IN ('requeue', 'lost') THEN -1 ELSE 0 END,
            CASE WHEN s.ends THEN 1 ELSE 0 END,
            CASE WHEN s.kind = 'claim' THEN 1 WHEN s.kind IN ('requeue', 'lost') OR s.ends AND s.was_processing THEN -1 ELSE 0 END,
            CASE WHEN s.ends THEN s.r_held_micro ELSE 0 END,
            CASE s.kind WHEN 'settle' THEN s.job_captured_micro WHEN 'late' THEN s.late_micro ELSE 0 END)
    UNION ALL
    SELECT 'job_history', s.tenant_id, s.job_id, to_jsonb(s)
      FROM step s
     WHERE s.kind <> 'parked'
       AND (s.job_id IS DISTINCT FROM s.r_job_id
            OR coalesce(s.previous_no, 0) <> s.before_no
            OR s.attempt IS DISTINCT FROM s.before_attempt + CASE WHEN s.kind = 'claim' THEN 1 ELSE 0 END
            OR s.before = 'late'
            OR s.was_over <> (s.kind = 'late')
            OR s.was_processing AND s.kind IN ('claim', 'cancel')
            OR NOT s.was_processing AND s.kind IN ('requeue', 'lost', 'exhausted', 'unknown', 'overdue')
            OR s.is_newest AND (s.job_previous_no, s.job_attempt, s.state) IS DISTINCT FROM
               (s.dispatch_no, s.attempt, CASE WHEN s.ends OR s.kind = 'late' THEN 'ended'
                                               WHEN s.kind IN ('requeue', 'lost') THEN 'queued' ELSE 'processing' END))

    -- decisions: right by what they were made on

    UNION ALL
    SELECT 'acceptance_above_limit', a.tenant_id, NULL, to_jsonb(a)
      FROM acceptance a WHERE a.unfounded OR NOT a.observed AND a.outstanding > a.accepted_limit
    UNION ALL
    SELECT 'acceptance_above_balance', a.tenant_id, NULL, to_jsonb(a)
      FROM acceptance a WHERE NOT a.observed AND a.amount_micro > 0 AND a.available_micro < -a.overdraft_micro
    UNION ALL
    SELECT 'start_above_limit', s.tenant_id, s.job_id, to_jsonb(s)
      FROM step s WHERE s.kind = 'claim' AND coalesce(s.active > s.concurrency_limit, true)

    -- jobs: each in one place, the same there as when it was accepted, and the sums of all are the totals

    UNION ALL
    SELECT 'job_place', j.tenant_id, coalesce(j.r_job_id, j.job_id), to_jsonb(j)
      FROM job j WHERE j.job_id IS DISTINCT FROM j.r_job_id
    UNION ALL
    SELECT 'job_place', j.tenant_id, NULL, jsonb_build_object('job_no', j.job_no, 'places', count(*))
      FROM job j GROUP BY j.tenant_id, j.job_no HAVING count(*) > 1
    UNION ALL
    SELECT 'job_row', j.tenant_id, j.job_id, to_jsonb(j)
      FROM job j
     WHERE j.state <> 'ended' AND (j.lane_no, j.held_micro, j.start_by) IS DISTINCT FROM (j.r_lane_no, j.r_held_micro, j.r_start_by)
        OR j.state = 'processing' AND j.attempt < 1
        OR j.previous_no > 0 AND NOT EXISTS (SELECT FROM admission.dispatch d WHERE d.tenant_id = j.tenant_id AND d.dispatch_no = j.previous_no AND d.job_no = j.job_no)
    UNION ALL
    SELECT 'job_money', e.tenant_id, e.job_id, to_jsonb(e) || jsonb_build_object('held_micro', r.held_micro)
      FROM admission.ended e
      JOIN admission.job_record r ON r.job_id = e.job_id
     WHERE e.captured_micro - e.overage_micro + e.released_micro <> r.held_micro
        OR e.overage_micro <> greatest(e.captured_micro - r.held_micro, 0)
        OR least(e.captured_micro, e.late_micro) < 0
        OR e.captured_micro > 0 AND e.cause <> 'settled'
    UNION ALL
    SELECT 'operation_key', r.tenant_id, NULL, jsonb_build_object('operation_key', r.operation_key, 'jobs', count(*))
      FROM admission.job_record r GROUP BY r.tenant_id, r.operation_key HAVING count(*) > 1
    UNION ALL
    SELECT 'tenant_totals', n.tenant_id, NULL, jsonb_build_object('journals', to_jsonb(n), 'jobs', to_jsonb(s))
      FROM newest n
      LEFT JOIN summed s ON s.tenant_id = n.tenant_id
     WHERE (n.admitted, n.reserved_micro, n.admitted - n.departed, n.active, n.concluded, n.reserved_micro - n.unreserved_micro, n.captured_micro)
           IS DISTINCT FROM
           (coalesce(s.jobs, 0), coalesce(s.reserved_micro, 0), coalesce(s.queued, 0), coalesce(s.active, 0), coalesce(s.concluded, 0),
            coalesce(s.held_micro, 0), coalesce(s.captured_micro, 0))

    -- money in: refunds within what was captured, top-ups counted as booked

    UNION ALL
    SELECT 'refund_above_capture', f.tenant_id, f.job_id, jsonb_build_object('refunded_micro', f.amount_micro)
      FROM (SELECT tenant_id, job_id, sum(amount_micro) AS amount_micro FROM admission.billing WHERE kind = 'refund' GROUP BY tenant_id, job_id) f
      LEFT JOIN admission.ended e ON e.tenant_id = f.tenant_id AND e.job_id = f.job_id
     WHERE f.amount_micro > coalesce(e.captured_micro + e.late_micro, 0)
    UNION ALL
    SELECT 'counted_top_up', coalesce(b.tenant_id, c.tenant_id), NULL, jsonb_build_object('booked', to_jsonb(b), 'counted', to_jsonb(c))
      FROM (SELECT b.tenant_id, b.billing_no, b.at, b.amount_micro, coalesce(-r.amount_micro, 0) AS reversed_micro
              FROM admission.billing b
              LEFT JOIN (SELECT reverses, sum(amount_micro) AS amount_micro FROM admission.billing WHERE kind = 'reversal' GROUP BY reverses) r
                     ON r.reverses = b.reference
             WHERE b.kind = 'top_up') b
      FULL JOIN admission.counted_top_up c ON c.tenant_id = b.tenant_id AND c.billing_no = b.billing_no
     WHERE (b.at, b.amount_micro, b.reversed_micro) IS DISTINCT FROM (c.at, c.amount_micro, c.reversed_micro)
        OR c.reversed_micro > c.amount_micro

    -- the global pool: what is free and what is outstanding make up the capacity

    UNION ALL
    SELECT 'pool_tokens', NULL, NULL, to_jsonb(p) FROM pool p WHERE p.free + p.outstanding <> coalesce(p.capacity, 0)
    UNION ALL
    SELECT 'pool_capacity', NULL, NULL, to_jsonb(p) FROM pool p WHERE p.policy IS DISTINCT FROM p.capacity
    UNION ALL
    SELECT 'pool_overdrawn', NULL, NULL, to_jsonb(s) FROM stripe s WHERE s.bounded AND s.stripe > 0 AND s.tokens < 0

    -- reach: some future claim comes to every queued job, and to every lease when it ends

    UNION ALL
    SELECT 'lane', j.tenant_id, j.job_id, to_jsonb(j) || jsonb_build_object('lane', to_jsonb(l))
      FROM job j
      LEFT JOIN admission.lane l ON l.tenant_id = j.tenant_id AND l.lane_no = j.lane_no
     WHERE j.state <> 'ended' AND (l.priority, l.model_id) IS DISTINCT FROM (j.priority, j.model_id)
    UNION ALL
    SELECT 'lane_head', q.tenant_id, q.job_id, to_jsonb(q) || jsonb_build_object('head', h.head)
      FROM admission.queued q
      JOIN (SELECT DISTINCT ON (tenant_id, lane_no) * FROM admission.lane_head ORDER BY tenant_id, lane_no, version DESC) h
        ON h.tenant_id = q.tenant_id AND h.lane_no = q.lane_no
     WHERE q.job_no < h.head
    UNION ALL
    SELECT 'unreachable', n.tenant_id, NULL, to_jsonb(n) || jsonb_build_object('ready', r.at, 'due', d.at, 'concurrency_limit', g.concurrency_limit)
      FROM ready r
      JOIN newest n ON n.tenant_id = r.tenant_id
      LEFT JOIN due d ON d.tenant_id = r.tenant_id
     CROSS JOIN LATERAL admission.generation_limits(n.tenant) g
     WHERE coalesce(d.at > greatest(r.at, (SELECT now FROM instant)), r.at < 'infinity')
       AND NOT (n.saturated AND n.active >= g.concurrency_limit)
       AND n.suspended_at IS NULL AND NOT (SELECT draining FROM admission.policy)
    UNION ALL
    SELECT 'delay_not_due', w.tenant_id, w.job_id, to_jsonb(w) || jsonb_build_object('due', d.at)
      FROM admission.delayed w
      LEFT JOIN due d ON d.tenant_id = w.tenant_id
     WHERE coalesce(d.at > w.available_at, true)
    UNION ALL
    SELECT 'lease_not_due', p.tenant_id, p.job_id, to_jsonb(p) || jsonb_build_object('due', d.at)
      FROM admission.processing p
      LEFT JOIN due d ON d.tenant_id = p.tenant_id
     WHERE p.lease_expires_at < 'infinity' AND coalesce(d.at > greatest(p.lease_expires_at, (SELECT now FROM instant) + interval '1 second'), true)
    UNION ALL
    SELECT 'unknown_name', NULL, NULL, to_jsonb(n)
      FROM (SELECT 'price' AS named_by, p.model, NULL AS tenant FROM admission.price p
            UNION ALL SELECT 'model_access', a.model, a.tenant FROM admission.model_access a) n
     WHERE NOT EXISTS (SELECT FROM admission.model m WHERE m.model = n.model)
        OR n.tenant IS NOT NULL AND NOT EXISTS (SELECT FROM admission.tenant t WHERE t.tenant = n.tenant)
    UNION ALL
    SELECT 'deadline', j.tenant_id, j.job_id, to_jsonb(j)
      FROM job j
     WHERE j.state = 'queued' AND j.start_by IS NOT NULL
       AND NOT EXISTS (SELECT FROM admission.deadline d WHERE d.start_by = j.start_by AND d.tenant_id = j.tenant_id AND d.job_no = j.job_no)
)
SELECT f.what, t.tenant, f.job_id, f.details
  FROM found f
  LEFT JOIN admission.tenant t ON t.tenant_id = f.tenant_id
 ORDER BY f.what, t.tenant, f.job_id
$$;
COMMENT ON FUNCTION admission.verify() IS
'Every violated invariant, one row each; empty means right. Reads all journals and jobs in one snapshot, so it may run at any time beside live traffic, in time linear to the history. what: intake_journal, billing_journal, dispatch_journal, job_history (a row does not follow from the one before); acceptance_above_limit, acceptance_above_balance, start_above_limit; job_place, job_row, job_money, operation_key, tenant_totals; refund_above_capture, counted_top_up; pool_tokens, pool_capacity, pool_overdrawn; lane, lane_head, unreachable, delay_not_due, lease_not_due, unknown_name, deadline. No locks.';
