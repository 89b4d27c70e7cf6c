-- What people query: jobs and reservations in front of the narrow tables, and the load of each tenant.

CREATE VIEW admission.job AS
    SELECT r.job_id, t.tenant, r.operation_key, m.model, r.request, r.context, r.priority,
           CASE WHEN e.job_no IS NOT NULL THEN e.state WHEN p.job_no IS NOT NULL THEN 'processing' ELSE 'queued' END AS state,
           'generation'::text AS stage,
           coalesce(e.submission, p.submission, 'none') AS submission,
           coalesce(e.attempt, p.attempt, d.attempt, q.attempt, 0) AS attempt,
           r.created_at, r.start_by,
           coalesce(e.started_at, p.claimed_at) AS started_at,
           e.finished_at,
           coalesce(e.provider_job_id, p.provider_job_id) AS provider_job_id,
           e.result, r.job_no,
           CASE e.state
               WHEN 'failed' THEN coalesce(
                   nullif(e.result -> 'public' -> 'error', 'null'),
                   CASE e.cause
                       WHEN 'attempts_exhausted' THEN '{"code": "attempts_exhausted", "message": "The generation was tried several times and could not be started."}'::jsonb
                       ELSE '{"code": "generation_failed", "message": "The generation failed."}'::jsonb
                   END)
               WHEN 'expired' THEN '{"code": "expired", "message": "The generation could not start in time."}'::jsonb
           END AS error,
           r.would_be
      FROM admission.job_record r
      JOIN admission.tenant t ON t.tenant_id = r.tenant_id
      JOIN admission.model m ON m.model_id = r.model_id
      LEFT JOIN admission.ended e ON e.tenant_id = r.tenant_id AND e.job_no = r.job_no
      LEFT JOIN admission.processing p ON p.tenant_id = r.tenant_id AND p.job_no = r.job_no
      LEFT JOIN admission.delayed d ON d.tenant_id = r.tenant_id AND d.job_no = r.job_no
      LEFT JOIN admission.queued q ON q.tenant_id = r.tenant_id AND q.lane_no = -r.lane_no AND q.job_no = r.job_no;
COMMENT ON VIEW admission.job IS
'Every job with its state: queued, processing, completed, failed, canceled or expired. submission: none, started, acknowledged or unknown, of the current attempt. started_at: of the current or last attempt. error: what the tenant may know of a failure (code, message). would_be: tenant in observe mode, the code enforce would have given.';

CREATE VIEW admission.reservation AS
    SELECT r.job_id, t.tenant,
           CASE WHEN e.job_no IS NULL THEN 'held'
                WHEN e.captured_micro > 0 OR e.state = 'completed' THEN 'captured'
                ELSE 'released' END AS state,
           r.unit, r.quantity, r.unit_price_micro, r.held_micro,
           coalesce(e.captured_micro, 0) AS captured_micro,
           coalesce(e.released_micro, 0) AS released_micro,
           coalesce(e.unpriced, false) AS unpriced,
           coalesce(e.overage_micro, 0) AS overage_micro,
           r.ceiling_micro, r.price_id
      FROM admission.job_record r
      JOIN admission.tenant t ON t.tenant_id = r.tenant_id
      LEFT JOIN admission.ended e ON e.tenant_id = r.tenant_id AND e.job_no = r.job_no;
COMMENT ON VIEW admission.reservation IS
'The money of every job, in micro-USD; state held, captured or released. captured_micro includes overage_micro, what was taken above the hold; captured - overage + released = held once the job is over. unpriced: completed without an amount, so the hold was taken. Late completions are apart, in ended.late_micro.';

CREATE VIEW admission.tenant_load AS
    SELECT t.tenant, t.plan_id, t.mode, t.suspended_at,
           g.limit_source, g.purchased_concurrency_limit, g.concurrency_limit, g.queued_jobs_limit, g.accepted_generation_jobs_limit,
           n.admitted - n.concluded AS outstanding, n.active, n.admitted - n.departed AS queued,
           n.balance_micro, n.held_micro, n.balance_micro - n.held_micro AS available_micro
      FROM admission.tenant t
      LEFT JOIN LATERAL (SELECT * FROM admission.intake i WHERE i.tenant_id = t.tenant_id ORDER BY i.intake_no DESC LIMIT 1) i ON true
      LEFT JOIN LATERAL (SELECT * FROM admission.dispatch d WHERE d.tenant_id = t.tenant_id ORDER BY d.dispatch_no DESC LIMIT 1) d ON true
      LEFT JOIN LATERAL (SELECT * FROM admission.billing b WHERE b.tenant_id = t.tenant_id ORDER BY b.billing_no DESC LIMIT 1) b ON true
     CROSS JOIN LATERAL (
           SELECT coalesce(i.admitted, 0) AS admitted, coalesce(d.departed, 0) AS departed,
                  coalesce(d.concluded, 0) AS concluded, coalesce(d.active, 0) AS active,
                  coalesce(b.credited_micro, 0) - coalesce(d.captured_micro, 0) AS balance_micro,
                  coalesce(i.reserved_micro, 0) - coalesce(d.unreserved_micro, 0) AS held_micro) n
     CROSS JOIN LATERAL admission.generation_limits(t.tenant) g;
COMMENT ON VIEW admission.tenant_load IS
'What each tenant may have, has running and waiting, and owns: limits in force, jobs outstanding (queued + active), money in micro-USD. Read from the newest journal rows, a few index probes per tenant.';

CREATE VIEW admission.rejection_rate AS
    SELECT t.tenant, r.code, date_trunc('hour', r.at, 'UTC') AS hour, count(*) AS rejections, max(r.at) AS last_at
      FROM admission.rejection r
      JOIN admission.tenant t ON t.tenant_id = r.tenant_id
     GROUP BY t.tenant, r.code, hour;
COMMENT ON VIEW admission.rejection_rate IS
'Refused admissions per tenant, code and hour (UTC), as far as the rejection log reaches; see policy.log_rejections.';
