-- What every step starts from: the extension with 1000 tenants that never meet a limit, one model, one price; and in schema
-- floor plain tables of the same shape, with the same indexes, for what the extension is compared with.

CREATE EXTENSION admission;

INSERT INTO admission.model (model, provider) VALUES ('clip', 'nobody');
INSERT INTO admission.price (model, match, unit_price_micro) VALUES ('clip', '{"resolution": "720P"}', 100000);
INSERT INTO admission.tenant (tenant, concurrency_override, queued_jobs_override)
    SELECT 'rich-' || i, 1000000, 1000000000 FROM generate_series(1, 1000) i;
SELECT count(*) AS rich FROM admission.tenant t, admission.top_up(t.tenant, 1000000000000000, 'manual', 'start ' || t.tenant) d WHERE d.ok \g /dev/null

CREATE SCHEMA floor;
CREATE TABLE floor.job_record (LIKE admission.job_record INCLUDING ALL);
CREATE TABLE floor.queued (LIKE admission.queued INCLUDING ALL);
CREATE TABLE floor.processing (LIKE admission.processing INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE floor.ended (LIKE admission.ended INCLUDING ALL);
CREATE TABLE floor.provider_job (LIKE admission.provider_job INCLUDING ALL);
CREATE TABLE floor.intake (LIKE admission.intake INCLUDING ALL);
CREATE TABLE floor.dispatch (LIKE admission.dispatch INCLUDING ALL);
CREATE TABLE floor.billing (LIKE admission.billing INCLUDING ALL);
CREATE TABLE floor.counted_top_up (LIKE admission.counted_top_up INCLUDING ALL);
CREATE TABLE floor.tenant_lock (tenant_id integer PRIMARY KEY) WITH (fillfactor = 50);
INSERT INTO floor.billing SELECT * FROM admission.billing;
INSERT INTO floor.counted_top_up SELECT * FROM admission.counted_top_up;
INSERT INTO floor.tenant_lock SELECT t.tenant_id FROM admission.tenant t;

-- A job's id from its number: in ascending order, as those of the extension are, so that both fill their indexes alike.
CREATE FUNCTION floor.job_id(number bigint) RETURNS uuid
    LANGUAGE sql IMMUTABLE AS $$ SELECT lpad(number::text, 32, '0')::uuid $$;

-- The checks of admission.admit, as one would write them in PL/pgSQL with an eye on speed: one lock per tenant (an advisory
-- lock, or its row), then key, model, price, limits, money, in few statements, and the three rows in one. Configuration is
-- read where the extension reads it. Left out: the rejection log, the count of the global cap, the ring of ready tenants,
-- the full answer (it returns the code alone).
CREATE FUNCTION floor.admit(p_tenant text, p_operation_key text, p_model text, p_request jsonb, p_context jsonb, p_number bigint,
                            p_lock_row boolean DEFAULT false)
    RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    tenant       record;
    totals       record;
    offer        record;
    moment       timestamptz;
    print        bytea := sha256(convert_to(p_model || p_request::text, 'UTF8'));
    known        bytea;
    quantity     bigint;
    quote        bigint;
    allowed      integer;
    accepted     integer;
BEGIN
    SELECT t.*, p.* INTO tenant FROM admission.tenant t, admission.policy p WHERE t.tenant = p_tenant;
    IF octet_length(p_operation_key) > tenant.operation_key_max_length OR jsonb_typeof(p_request) <> 'object' THEN
        RETURN 'invalid_request';
    ELSIF tenant.tenant_id IS NULL THEN
        RETURN 'unknown_tenant';
    ELSIF tenant.suspended_at IS NOT NULL THEN
        RETURN 'tenant_suspended';
    END IF;
    IF p_lock_row THEN
        PERFORM FROM floor.tenant_lock l WHERE l.tenant_id = tenant.tenant_id FOR UPDATE;
    ELSE
        PERFORM pg_advisory_xact_lock(tenant.tenant_id);
    END IF;
    moment := clock_timestamp();

    SELECT j.fingerprint INTO known FROM floor.job_record j WHERE j.tenant_id = tenant.tenant_id AND j.operation_key = p_operation_key;
    IF FOUND THEN
        RETURN CASE WHEN known = print THEN 'already_accepted' ELSE 'idempotency_conflict' END;
    END IF;

    SELECT coalesce(i.intake_no, 0) AS intake_no, coalesce(i.admitted, 0) AS admitted, coalesce(i.reserved_micro, 0) AS reserved, i.rate_clock,
           coalesce(d.dispatch_no, 0) AS dispatch_no, coalesce(b.billing_no, 0) AS billing_no,
           coalesce(i.admitted, 0) - coalesce(d.concluded, 0) AS outstanding,
           coalesce(i.reserved_micro, 0) - coalesce(d.unreserved_micro, 0) AS held,
           coalesce(b.credited_micro, 0) - coalesce(d.captured_micro, 0) AS balance,
           (SELECT c.concurrency FROM admission.concurrency_tier c
             WHERE c.min_top_up_micro <= (SELECT coalesce(sum(u.amount_micro - u.reversed_micro), 0)::bigint FROM floor.counted_top_up u
                                           WHERE u.tenant_id = tenant.tenant_id AND u.at > moment - tenant.top_up_window AND u.at <= moment)
             ORDER BY c.min_top_up_micro DESC LIMIT 1) AS purchased
      INTO totals
      FROM (SELECT) one
      LEFT JOIN LATERAL (SELECT * FROM floor.intake i WHERE i.tenant_id = tenant.tenant_id ORDER BY i.intake_no DESC LIMIT 1) i ON true
      LEFT JOIN LATERAL (SELECT * FROM floor.dispatch d WHERE d.tenant_id = tenant.tenant_id ORDER BY d.dispatch_no DESC LIMIT 1) d ON true
      LEFT JOIN LATERAL (SELECT * FROM floor.billing b WHERE b.tenant_id = tenant.tenant_id ORDER BY b.billing_no DESC LIMIT 1) b ON true;
    IF tenant.submit_rate IS NOT NULL AND totals.rate_clock > moment THEN
        RETURN 'rate_limited';
    END IF;

    SELECT m.model_id, m.paused_until, p.* INTO offer
      FROM admission.model m
      LEFT JOIN LATERAL (SELECT * FROM admission.price p
                          WHERE p.model = p_model AND p_request @> p.match AND p.effective_from <= moment
                          ORDER BY p.match DESC, p.effective_from DESC LIMIT 1) p ON true
     WHERE m.model = p_model AND m.enabled AND m.open_to_all;
    IF offer.model_id IS NULL THEN
        RETURN 'model_not_found';
    ELSIF offer.price_id IS NULL THEN
        RETURN 'unsupported_configuration';
    ELSIF offer.paused_until > moment THEN
        RETURN 'provider_capacity_exceeded';
    END IF;
    quantity := coalesce((p_request ->> offer.quantity_field)::bigint, offer.default_quantity, 1);
    quote := quantity * offer.unit_price_micro;

    allowed := totals.purchased;
    IF coalesce(tenant.override_expires_at > moment, true) THEN
        allowed := greatest(allowed, tenant.concurrency_override);
    END IF;
    accepted := allowed + coalesce(tenant.queued_jobs_override, greatest(tenant.queue_minimum, tenant.queue_factor * allowed));
    IF totals.outstanding >= accepted THEN
        RETURN 'queue_full';
    ELSIF totals.held + quote > tenant.at_risk_micro THEN
        RETURN 'budget_exhausted';
    ELSIF totals.balance - totals.held + tenant.overdraft_micro < quote THEN
        RETURN 'insufficient_credits';
    END IF;

    WITH job AS (
        INSERT INTO floor.job_record VALUES (
            floor.job_id(p_number), tenant.tenant_id, totals.admitted + 1, 1, offer.model_id, offer.price_id, 0,
            p_operation_key, print, p_request, p_context, moment, NULL,
            offer.unit, quantity, offer.unit_price_micro, quote, quote, quote, NULL)
    ), place AS (
        INSERT INTO floor.queued VALUES (
            tenant.tenant_id, 1, totals.admitted + 1, floor.job_id(p_number), 0, 0, 0, NULL, quote, false)
    )
    INSERT INTO floor.intake VALUES (
        tenant.tenant_id, totals.intake_no + 1, moment, 1, quote, totals.admitted + 1, totals.reserved + quote, NULL,
        totals.dispatch_no, totals.billing_no, allowed, accepted, tenant.overdraft_micro, false);
    RETURN 'accepted';
END $$;

-- Single calls of admit in one transaction, each a statement of its own, without a round trip.
CREATE FUNCTION floor.admit_each(p_tenant text, p_prefix text, p_request jsonb, p_context jsonb, p_count integer)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. p_count LOOP
        PERFORM d.code FROM admission.admit(p_tenant, p_prefix || i, 'clip', p_request, p_context) d;
    END LOOP;
END $$;
