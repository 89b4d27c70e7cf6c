-- What the application's backend calls.

CREATE FUNCTION admission.clock() RETURNS timestamptz
    LANGUAGE c VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_clock';
COMMENT ON FUNCTION admission.clock() IS
'The time decisions are made by: clock_timestamp(), or admission.test_clock where a superuser has set it. No locks.';

CREATE FUNCTION admission.admit(
    tenant text, operation_key text, model text, request jsonb,
    context jsonb DEFAULT '{}', priority integer DEFAULT 0,
    start_within interval DEFAULT NULL, max_ahead integer DEFAULT NULL, max_cost_micro bigint DEFAULT NULL)
    RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_admit';
COMMENT ON FUNCTION admission.admit(text, text, text, jsonb, jsonb, integer, interval, integer, bigint) IS
'Decides on one job and, on acceptance, writes job and reservation in the caller''s transaction. request is the client''s and is fingerprinted; context is the server''s own; higher priority first (-32768 to 32767); start_within: expires unless started by then; max_ahead: refuse when more jobs are before it; max_cost_micro: refuse a dearer quote. Codes: see decision_code. Errors: 40001, 22003, 25006, 55000. Locks until the transaction ends: intake of the tenant; a rejection releases it.';

CREATE FUNCTION admission.admit_many(tenant text, items jsonb, all_or_nothing boolean DEFAULT false)
    RETURNS SETOF admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_admit_many';
COMMENT ON FUNCTION admission.admit_many(text, jsonb, boolean) IS
'Decides on many jobs of one tenant in order, one decision each. items: an array of objects with the argument names of admit. all_or_nothing: if one is refused nothing is written, and the decisions tell what each met. Locks and errors as admit, one intake row in all.';

CREATE FUNCTION admission.preview(
    tenant text, operation_key text, model text, request jsonb,
    context jsonb DEFAULT '{}', priority integer DEFAULT 0,
    start_within interval DEFAULT NULL, max_ahead integer DEFAULT NULL, max_cost_micro bigint DEFAULT NULL)
    RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_preview';
COMMENT ON FUNCTION admission.preview(text, text, text, jsonb, jsonb, integer, interval, integer, bigint) IS
'What admit would answer now, from the same code; an acceptance is coded preview. operation_key may be null: then no key is looked up. Writes nothing, takes no lock, works in read-only transactions and on a standby.';

CREATE FUNCTION admission.cancel(tenant text, job_id uuid) RETURNS admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_cancel';
COMMENT ON FUNCTION admission.cancel(text, uuid) IS
'Cancels a queued job and releases its money. Codes: canceled, already_canceled, job_generation_already_started, not_found, unknown_tenant, invalid_request. Lock: dispatch of the tenant.';

CREATE FUNCTION admission.cancel_queued(tenant text, context jsonb DEFAULT '{}') RETURNS SETOF admission.decision
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_cancel_queued';
COMMENT ON FUNCTION admission.cancel_queued(text, jsonb) IS
'Cancels all queued jobs of the tenant whose context contains the given one; a decision for each. Lock: dispatch of the tenant.';

CREATE FUNCTION admission.generation_limits(tenant text) RETURNS admission.generation_limits
    LANGUAGE c VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_generation_limits';
COMMENT ON FUNCTION admission.generation_limits(text) IS
'The limits of a tenant and what it uses of them, now; null for an unknown tenant. No locks.';

