-- What workers call.

CREATE FUNCTION admission.claim_next(
    worker text, max_jobs integer DEFAULT 1, lease interval DEFAULT NULL, stage text DEFAULT 'generation',
    tenants text[] DEFAULT NULL, models text[] DEFAULT NULL, begin boolean DEFAULT false)
    RETURNS SETOF admission.claim
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_claim_next';
COMMENT ON FUNCTION admission.claim_next(text, integer, interval, text, text[], text[], boolean) IS
'Takes up to max_jobs queued jobs, tenants in turn by weight, each tenant''s by priority and then order of admission, and leases them (policy.default_lease by default). tenants, models: only of these. begin: also begin_submission. Never waits for another transaction; no row means nothing may start now (with a filter: not for the tenants that this call got to, at most 1024; ask again). Errors: 22023, 40001, 25006. Lock until the transaction ends: dispatch of each tenant it took from.';

CREATE FUNCTION admission.next_wake(stage text DEFAULT 'generation') RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT CASE WHEN p.draining OR next_wake.stage IS DISTINCT FROM 'generation' THEN NULL
                    WHEN EXISTS (SELECT FROM admission.ring) THEN admission.clock()
                    ELSE (SELECT d.at FROM admission.due d ORDER BY d.at LIMIT 1) END
          FROM admission.policy p
    $$;
COMMENT ON FUNCTION admission.next_wake(text) IS
'When a worker that found nothing should ask again at the latest: now if a tenant stands ready, else the next lease, delay or pause that ends; null if only new work or another policy can change anything, and for a stage that does not exist. No locks.';

CREATE FUNCTION admission.begin_submission(job_id uuid, attempt integer) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_begin_submission';
COMMENT ON FUNCTION admission.begin_submission(uuid, integer) IS
'Says that the provider is about to be called; commit it before the call. Codes: submission_started (again with details.repeated), job_generation_already_started (the provider has or may have it), stale_claim, not_found, invalid_request. Lock: the job''s own row.';

CREATE FUNCTION admission.submitted(job_id uuid, attempt integer, provider_job_id text) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_submitted';
COMMENT ON FUNCTION admission.submitted(uuid, integer, text) IS
'Says that the provider took the job under its own id; turns started or unknown into acknowledged (and none, where begin_submission was forgotten: what a provider has is never denied). Codes: submitted, stale_claim, settlement_conflict (the id names another job), not_found, invalid_request. Lock: the job''s own row.';

CREATE FUNCTION admission.report_unknown(job_id uuid, attempt integer, reason text DEFAULT NULL) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_report_unknown';
COMMENT ON FUNCTION admission.report_unknown(uuid, integer, text) IS
'Says that nobody knows whether the provider took the job; hold and slot stay until there is evidence. Codes: unknown_recorded, submitted (it is known after all), stale_claim (also where begin_submission was not called), not_found, invalid_request. Lock: the job''s own row.';

CREATE FUNCTION admission.heartbeat(job_id uuid, attempt integer, lease interval DEFAULT NULL) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_heartbeat';
COMMENT ON FUNCTION admission.heartbeat(uuid, integer, interval) IS
'Extends the lease from now. Codes: lease_extended, stale_claim, not_found, invalid_request. Lock: the job''s own row.';

CREATE FUNCTION admission.requeue(job_id uuid, attempt integer, delay interval DEFAULT NULL, reason text DEFAULT NULL, not_received boolean DEFAULT false)
    RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_requeue';
COMMENT ON FUNCTION admission.requeue(uuid, integer, interval, text, boolean) IS
'Gives a claimed job back to its old place, with the same hold. After begin_submission only with not_received: the provider refused it or never had it. delay: not before that. A job past its start_by expires instead (details.state). Codes: requeued, stale_claim, job_generation_already_started (it may be at the provider), not_found, invalid_request. Lock: dispatch of the tenant.';

CREATE FUNCTION admission.settle(
    job_id uuid, outcome text, actual_micro bigint DEFAULT NULL, settlement_key text DEFAULT NULL,
    attempt integer DEFAULT NULL, result jsonb DEFAULT NULL, provider_job_id text DEFAULT NULL)
    RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_settle';
COMMENT ON FUNCTION admission.settle(uuid, text, bigint, text, integer, jsonb, text) IS
'The evidence that ends a job: outcome completed or failed. completed captures actual_micro (null: the hold, flagged unpriced; above the hold: in full, as an overage) and releases the rest; failed releases all but actual_micro. result: an object whose part public the tenant may see. job_id may be null where provider_job_id names one job. Codes: settled, already_settled, settlement_conflict, stale_claim, late_completion, not_found, invalid_request. A provider_job_id that names another job is a settlement_conflict. Lock: dispatch of the tenant.';

CREATE FUNCTION admission.settle_many(items jsonb) RETURNS SETOF admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_settle_many';
COMMENT ON FUNCTION admission.settle_many(jsonb) IS
'Settles an array of objects with the argument names of settle, locking tenants in ascending order; decisions come in the order of the items.';

