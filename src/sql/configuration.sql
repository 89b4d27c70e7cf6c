-- Configuration: plain tables an operator edits.

CREATE TABLE admission.policy (
    singleton                  boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    global_outstanding_cap     integer CHECK (global_outstanding_cap >= 0),
    operation_key_max_length   integer NOT NULL DEFAULT 255 CHECK (operation_key_max_length BETWEEN 1 AND 1024),
    operation_key_retention    interval NOT NULL DEFAULT '720 hours' CHECK (operation_key_retention > '0'),
    top_up_window              interval NOT NULL DEFAULT '672 hours' CHECK (top_up_window > '0' AND top_up_window <= '100 years'),
    queue_factor               integer NOT NULL DEFAULT 5 CHECK (queue_factor BETWEEN 0 AND 10000),
    queue_minimum              integer NOT NULL DEFAULT 3 CHECK (queue_minimum BETWEEN 0 AND 1000000000),
    wave_fraction              numeric NOT NULL DEFAULT 0.75 CHECK (wave_fraction BETWEEN 0 AND 1),
    default_lease              interval NOT NULL DEFAULT '5 minutes' CHECK (default_lease > '0' AND default_lease <= '100 years'),
    default_start_within       interval CHECK (default_start_within > '0' AND default_start_within <= '100 years'),
    max_attempts               integer NOT NULL DEFAULT 3 CHECK (max_attempts >= 1),
    credit_micro               bigint NOT NULL DEFAULT 10000 CHECK (credit_micro > 0),
    log_rejections             boolean NOT NULL DEFAULT true,
    late_completion            text NOT NULL DEFAULT 'absorb' CHECK (late_completion IN ('absorb', 'charge')),
    draining                   boolean NOT NULL DEFAULT false,
    seeded                     boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE admission.policy IS 'One row of rules for all tenants; edit it with UPDATE. Intervals are exact hours: months and days are refused where a window is meant.';
COMMENT ON COLUMN admission.policy.global_outstanding_cap IS 'Most jobs outstanding over all tenants; null = none. May be set, changed and unset under load; the UPDATE may wait for open admissions.';
COMMENT ON COLUMN admission.policy.operation_key_max_length IS 'Longest operation key, in bytes.';
COMMENT ON COLUMN admission.policy.operation_key_retention IS 'How long after its job ended a key is remembered at least; nothing forgets keys yet.';
COMMENT ON COLUMN admission.policy.top_up_window IS 'Top-ups younger than this count for the tier. 672 hours = 28 days.';
COMMENT ON COLUMN admission.policy.late_completion IS 'A success reported for a job ended by force: absorb it, or charge it as an overage.';
COMMENT ON COLUMN admission.policy.draining IS 'Stop all dispatch, keep admitting.';
COMMENT ON COLUMN admission.policy.seeded IS 'Came with CREATE EXTENSION; a restored row replaces it.';

CREATE TABLE admission.tenant (
    tenant                text PRIMARY KEY COLLATE "C" CHECK (tenant <> '' AND octet_length(tenant) <= 255),
    tenant_id             integer NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE CHECK (tenant_id > 0),
    plan_id               text,
    mode                  text NOT NULL DEFAULT 'enforce' CHECK (mode IN ('enforce', 'observe')),
    suspended_at          timestamptz,
    concurrency_override  integer CHECK (concurrency_override BETWEEN 0 AND 1000000),
    queued_jobs_override  integer CHECK (queued_jobs_override BETWEEN 0 AND 1000000000),
    override_expires_at   timestamptz,
    override_reason       text,
    submit_rate           double precision CHECK (submit_rate > 0 AND submit_rate <= 1000000),
    submit_burst          integer CHECK (submit_burst BETWEEN 1 AND 1000000),
    weight                integer NOT NULL DEFAULT 1 CHECK (weight BETWEEN 1 AND 1000),
    overdraft_micro       bigint NOT NULL DEFAULT 0 CHECK (overdraft_micro >= 0),
    at_risk_micro         bigint CHECK (at_risk_micro >= 0),
    labels                jsonb NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE admission.tenant IS 'The accounts that pay and are capped. INSERT of the name alone makes a complete tenant.';
COMMENT ON COLUMN admission.tenant.tenant_id IS 'Surrogate id: key of all states, journals and locks.';
COMMENT ON COLUMN admission.tenant.mode IS 'enforce, or observe: rate, capacity and money gates are waived and details.would_be keeps the code.';
COMMENT ON COLUMN admission.tenant.suspended_at IS 'Not null: admissions are refused, queued jobs wait, running jobs run on.';
COMMENT ON COLUMN admission.tenant.submit_rate IS 'Acceptances a second; null = unlimited.';
COMMENT ON COLUMN admission.tenant.submit_burst IS 'Acceptances that may come at once; null = 1.';
COMMENT ON COLUMN admission.tenant.weight IS 'Jobs started per turn among ready tenants.';
COMMENT ON COLUMN admission.tenant.overdraft_micro IS 'How far below zero available money may go.';
COMMENT ON COLUMN admission.tenant.at_risk_micro IS 'Ceiling on money held; null = none.';

CREATE TABLE admission.concurrency_tier (
    min_top_up_micro bigint PRIMARY KEY CHECK (min_top_up_micro >= 0),
    concurrency      integer NOT NULL CHECK (concurrency BETWEEN 0 AND 1000000),
    seeded           boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE admission.concurrency_tier IS 'Concurrency earned by the top-ups within policy.top_up_window; a tier is reached at exactly its amount.';

CREATE TABLE admission.model (
    model              text PRIMARY KEY COLLATE "C" CHECK (model <> '' AND octet_length(model) <= 255),
    model_id           integer NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE CHECK (model_id > 0),
    provider           text NOT NULL CHECK (provider <> ''),
    enabled            boolean NOT NULL DEFAULT true,
    open_to_all        boolean NOT NULL DEFAULT true,
    mode               text,
    paused_until       timestamptz,
    pause_reason       text,
    queue_while_paused boolean NOT NULL DEFAULT false,
    max_attempts       integer CHECK (max_attempts >= 1)
);
COMMENT ON TABLE admission.model IS 'What can be generated with. model is public, provider is private.';
COMMENT ON COLUMN admission.model.enabled IS 'Off: nothing is admitted and nothing queued starts; what runs goes on.';
COMMENT ON COLUMN admission.model.mode IS 'A free label of the kind of work, such as text-to-video.';
COMMENT ON COLUMN admission.model.paused_until IS 'Until then nothing starts, and nothing is admitted unless queue_while_paused.';
COMMENT ON COLUMN admission.model.max_attempts IS 'Lost leases before a job fails; null = policy.max_attempts.';

CREATE TABLE admission.model_access (
    model  text NOT NULL COLLATE "C",
    tenant text NOT NULL COLLATE "C",
    PRIMARY KEY (model, tenant)
);
COMMENT ON TABLE admission.model_access IS 'Who may use a model that is not open to all.';

CREATE TABLE admission.price (
    price_id           bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    model              text NOT NULL COLLATE "C",
    match              jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(match) = 'object'),
    unit               text NOT NULL DEFAULT 'generation' CHECK (unit <> ''),
    unit_price_micro   bigint NOT NULL CHECK (unit_price_micro >= 0),
    quantity_field     text CHECK (quantity_field <> ''),
    default_quantity   bigint CHECK (default_quantity >= 1),
    min_quantity       bigint CHECK (min_quantity >= 1),
    max_quantity       bigint CHECK (max_quantity >= 1),
    allowed_quantities bigint[] CHECK (cardinality(allowed_quantities) >= 1 AND array_position(allowed_quantities, NULL) IS NULL AND 1 <= ALL (allowed_quantities)),
    hold               text NOT NULL DEFAULT 'quote' CHECK (hold IN ('quote', 'ceiling')),
    effective_from     timestamptz NOT NULL DEFAULT '-infinity',
    UNIQUE (model, match, effective_from),
    CHECK (max_quantity >= min_quantity),
    CHECK (default_quantity >= min_quantity),
    CHECK (default_quantity <= max_quantity),
    CHECK (default_quantity = ANY (allowed_quantities)),
    CHECK (unit <> 'second' OR quantity_field IS NOT NULL OR default_quantity IS NOT NULL),
    CHECK (hold = 'quote' OR quantity_field IS NULL OR max_quantity IS NOT NULL)
);
COMMENT ON TABLE admission.price IS 'What one unit costs for requests that contain match; the most specific match wins. Quantities are whole numbers of the unit; without quantity_field the quantity is default_quantity, or 1.';
COMMENT ON COLUMN admission.price.quantity_field IS 'The top-level field of the request that holds the quantity, e.g. seconds; absent from the request: default_quantity is priced and written into the request the worker gets.';
COMMENT ON COLUMN admission.price.hold IS 'What a job reserves: its quote, or the ceiling (unit price x max_quantity).';
COMMENT ON COLUMN admission.price.effective_from IS 'Of the prices with one match, the latest that is not in the future counts.';

CREATE TABLE admission.decision_code (
    code        text PRIMARY KEY,
    ok          boolean NOT NULL,
    http_status integer NOT NULL,
    retryable   boolean NOT NULL,
    retry_key   text CHECK (retry_key IN ('same', 'new')),
    meaning     text NOT NULL,
    client      text NOT NULL,
    seeded      boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE admission.decision_code IS 'Every code a decision can carry, and what a client should do: documentation to query and join.';

CREATE TABLE admission.deleted_default (
    table_name text NOT NULL,
    key        text NOT NULL,
    PRIMARY KEY (table_name, key)
);
COMMENT ON TABLE admission.deleted_default IS 'Defaults of CREATE EXTENSION that an operator deleted, so that a restore deletes them again.';

INSERT INTO admission.policy (seeded) VALUES (true);
INSERT INTO admission.concurrency_tier VALUES (0, 2, true), (25000000, 10, true), (100000000, 20, true), (1000000000, 40, true);

CREATE FUNCTION admission.decision_codes(
    OUT code text, OUT ok boolean, OUT http_status integer, OUT retryable boolean, OUT retry_key text, OUT meaning text, OUT client text)
    RETURNS SETOF record
    LANGUAGE c IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_decision_codes';
COMMENT ON FUNCTION admission.decision_codes() IS 'The codes as the library knows them: what decision_code starts with.';

INSERT INTO admission.decision_code SELECT c.*, true FROM admission.decision_codes() c;

