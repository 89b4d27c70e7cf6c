-- What operators call.

CREATE FUNCTION admission.create_tenant(tenant text, plan_id text DEFAULT NULL) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_create_tenant';
COMMENT ON FUNCTION admission.create_tenant(text, text) IS
'Makes a tenant, as INSERT INTO admission.tenant does. Codes: recorded, already_recorded, invalid_request.';

CREATE FUNCTION admission.top_up(tenant text, amount_micro bigint, source text, reference text) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_top_up';
COMMENT ON FUNCTION admission.top_up(text, bigint, text, text) IS
'Money the tenant bought; source manual or auto. Counts for the tier for policy.top_up_window. Idempotent by reference. Codes: recorded, already_recorded, reference_conflict, unknown_tenant, invalid_request. Lock: billing of the tenant.';

CREATE FUNCTION admission.grant_credit(tenant text, amount_micro bigint, kind text, reference text) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_grant_credit';
COMMENT ON FUNCTION admission.grant_credit(text, bigint, text, text) IS
'Money that was not bought; kind plan or grant. Spendable, never touches the tier. Codes and lock as top_up.';

CREATE FUNCTION admission.refund(job_id uuid, amount_micro bigint, reference text, reason text DEFAULT NULL) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_refund';
COMMENT ON FUNCTION admission.refund(uuid, bigint, text, text) IS
'Gives the tenant back what a job cost, at most what was captured for it. Never touches the tier. Codes: as top_up, and not_found. Lock: billing of the tenant.';

CREATE FUNCTION admission.reverse_top_up(top_up_reference text, amount_micro bigint, reference text, reason text DEFAULT NULL) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_reverse_top_up';
COMMENT ON FUNCTION admission.reverse_top_up(text, bigint, text, text) IS
'A payment was refunded or charged back, wholly or in part: balance down (below zero if spent) and tier down, as if that part had never been bought. Codes: as top_up, and not_found. Lock: billing of the tenant.';

CREATE FUNCTION admission.adjust(tenant text, amount_micro bigint, reference text, reason text DEFAULT NULL) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_adjust';
COMMENT ON FUNCTION admission.adjust(text, bigint, text, text) IS
'A correction of the balance by hand, up or down. Never touches the tier. Codes and lock as top_up.';

CREATE FUNCTION admission.expire(batch integer DEFAULT 1000, OUT expired integer, OUT requeued integer, OUT failed integer, OUT unknown integer, OUT skipped integer)
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_expire';
COMMENT ON FUNCTION admission.expire(integer) IS
'Ends queued jobs past their start_by and leases that ran out, at most batch of them, and says how many of each; skipped: another session is at work on their tenant, or their rows are locked. Safe at any time from any number of sessions; claims do the same for what they meet. Lock: dispatch of each tenant, never waited for.';

