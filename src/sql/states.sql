-- Where a job is: one wide row that is never updated, and one narrow row that says its state.

CREATE TABLE admission.job_record (
    job_id           uuid PRIMARY KEY,
    tenant_id        integer NOT NULL,
    job_no           bigint NOT NULL,
    lane_no          integer NOT NULL,
    model_id         integer NOT NULL,
    price_id         bigint NOT NULL,
    priority         smallint NOT NULL,
    operation_key    text NOT NULL COLLATE "C",
    fingerprint      bytea NOT NULL,
    request          jsonb NOT NULL,
    context          jsonb NOT NULL,
    created_at       timestamptz NOT NULL,
    start_by         timestamptz,
    unit             text NOT NULL,
    quantity         bigint NOT NULL,
    unit_price_micro bigint NOT NULL,
    quote_micro      bigint NOT NULL,
    held_micro       bigint NOT NULL,
    ceiling_micro    bigint NOT NULL,
    would_be         text,
    CONSTRAINT job_operation_key UNIQUE (tenant_id, operation_key)
);
COMMENT ON TABLE admission.job_record IS 'Accepted work as it was accepted; never updated. job_no counts the tenant''s jobs without a gap. The view job shows it with its state.';
COMMENT ON COLUMN admission.job_record.held_micro IS 'Money reserved at admission, micro-USD.';
COMMENT ON COLUMN admission.job_record.would_be IS 'Tenant in observe mode: the code enforce would have given.';

CREATE TABLE admission.queued (
    tenant_id   integer NOT NULL,
    lane_no     integer NOT NULL,
    job_no      bigint NOT NULL,
    job_id      uuid NOT NULL,
    attempt     integer NOT NULL,
    lost        integer NOT NULL,
    previous_no bigint NOT NULL,
    start_by    timestamptz,
    held_micro  bigint NOT NULL,
    submitted   boolean NOT NULL,
    PRIMARY KEY (tenant_id, lane_no, job_no)
);
COMMENT ON TABLE admission.queued IS 'Jobs in line. lane_no > 0: fresh, in order of admission; its negative: given back, at their old places.';

CREATE TABLE admission.delayed (
    tenant_id    integer NOT NULL,
    job_no       bigint NOT NULL,
    available_at timestamptz NOT NULL,
    lane_no      integer NOT NULL,
    job_id       uuid NOT NULL,
    attempt      integer NOT NULL,
    lost         integer NOT NULL,
    previous_no  bigint NOT NULL,
    start_by     timestamptz,
    held_micro   bigint NOT NULL,
    submitted    boolean NOT NULL,
    PRIMARY KEY (tenant_id, job_no)
);
CREATE INDEX delayed_available_at ON admission.delayed (tenant_id, available_at);
COMMENT ON TABLE admission.delayed IS 'Queued jobs that a worker gave back with a delay; a claim moves them into line when it has passed.';

CREATE TABLE admission.processing (
    tenant_id        integer NOT NULL,
    job_no           bigint NOT NULL,
    job_id           uuid NOT NULL,
    lane_no          integer NOT NULL,
    model_id         integer NOT NULL,
    attempt          integer NOT NULL,
    lost             integer NOT NULL,
    previous_no      bigint NOT NULL,
    start_by         timestamptz,
    held_micro       bigint NOT NULL,
    submission       text NOT NULL,
    worker           text,
    claimed_at       timestamptz NOT NULL,
    lease_expires_at timestamptz NOT NULL,
    begun_at         timestamptz,
    submitted_at     timestamptz,
    unknown_since    timestamptz,
    unknown_reason   text,
    provider_job_id  text,
    PRIMARY KEY (tenant_id, job_no)
) WITH (fillfactor = 70);
COMMENT ON TABLE admission.processing IS 'Jobs a worker has taken. lane_no is negative where the job was given back before. submission: none, started, acknowledged, unknown. lease_expires_at infinity: only evidence ends it.';

CREATE TABLE admission.ended (
    tenant_id       integer NOT NULL,
    job_no          bigint NOT NULL,
    job_id          uuid NOT NULL,
    state           text NOT NULL,
    cause           text NOT NULL,
    finished_at     timestamptz NOT NULL,
    attempt         integer NOT NULL,
    previous_no     bigint NOT NULL,
    submission      text NOT NULL,
    started_at      timestamptz,
    begun_at        timestamptz,
    submitted_at    timestamptz,
    unknown_since   timestamptz,
    provider_job_id text,
    captured_micro  bigint NOT NULL,
    released_micro  bigint NOT NULL,
    overage_micro   bigint NOT NULL,
    unpriced        boolean NOT NULL,
    late            boolean NOT NULL,
    late_micro      bigint NOT NULL,
    settlement_key  text,
    result          jsonb,
    PRIMARY KEY (tenant_id, job_no)
);
COMMENT ON TABLE admission.ended IS 'Jobs that are over. cause: settled (by evidence), canceled, expired, attempts_exhausted. captured = what was taken, overage included; captured - overage + released = held.';

CREATE TABLE admission.provider_job (
    provider_job_id text NOT NULL COLLATE "C",
    provider        text NOT NULL COLLATE "C",
    job_id          uuid NOT NULL,
    PRIMARY KEY (provider_job_id, provider)
);
COMMENT ON TABLE admission.provider_job IS 'Which job a provider''s own id names.';

CREATE TABLE admission.evidence (
    evidence_no     bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    at              timestamptz NOT NULL,
    tenant_id       integer NOT NULL,
    job_id          uuid NOT NULL,
    code            text NOT NULL,
    attempt         integer,
    outcome         text,
    actual_micro    bigint,
    settlement_key  text,
    provider_job_id text,
    result          jsonb
);
CREATE INDEX evidence_job ON admission.evidence (job_id, evidence_no);
COMMENT ON TABLE admission.evidence IS 'Reports that changed nothing (stale claims, contradicting settlements) or came late, kept for reconciliation.';

CREATE TABLE admission.rejection (
    rejection_no bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    at           timestamptz NOT NULL,
    tenant_id    integer NOT NULL,
    model        text,
    code         text NOT NULL,
    needed_micro bigint
);
COMMENT ON TABLE admission.rejection IS 'Refused admissions of known tenants, while policy.log_rejections is on; not those malformed in form, nor those of a batch that was taken back as a whole.';

