\echo Use "CREATE EXTENSION admission" to load this file. \quit

-- Result types. One composite answers every client-facing function.

CREATE TYPE admission.generation_limits AS (
    plan_id                        text,
    limit_source                   text,
    purchased_concurrency_limit    integer,
    concurrency_limit              integer,
    queued_jobs_limit              integer,
    accepted_generation_jobs_limit integer,
    active_generation_jobs         integer,
    queued_generation_jobs         integer,
    queue_capacity_remaining       integer,
    wave_size_hint                 integer,
    new_job_budget                 integer
);
COMMENT ON TYPE admission.generation_limits IS
'What a tenant may have running and waiting, and what it has. limit_source is plan or admin_override; queue_capacity_remaining is never below zero.';

CREATE TYPE admission.decision AS (
    ok                  boolean,
    code                text,
    http_status         integer,
    retryable           boolean,
    retry_after         interval,
    retry_after_seconds integer,
    retry_key           text,
    job_id              uuid,
    reserved_micro      bigint,
    message             text,
    details             jsonb,
    limits              admission.generation_limits
);
COMMENT ON TYPE admission.decision IS
'The answer of every client-facing function. code: see table decision_code. retryable: may be repeated unchanged after retry_after (retry_after_seconds rounds it up). retry_key: whether a retry keeps its operation key (same) or needs another (new). reserved_micro in micro-USD. limits: the state after the decision.';

CREATE TYPE admission.claim AS (
    job_id           uuid,
    tenant           text,
    attempt          integer,
    stage            text,
    model            text,
    provider         text,
    request          jsonb,
    context          jsonb,
    reserved_micro   bigint,
    start_by         timestamptz,
    lease_expires_at timestamptz
);
COMMENT ON TYPE admission.claim IS
'A worker''s right to one job: attempt is the fence, lease_expires_at the end of the right. request has the price''s defaults filled in.';

CREATE TYPE admission.job_status AS (
    job_id          uuid,
    operation_key   text,
    model           text,
    status          text,
    stage           text,
    terminal        boolean,
    result_ready    boolean,
    result          jsonb,
    error           jsonb,
    "position"      bigint,
    position_exact  boolean,
    estimated_start timestamptz,
    reserved_micro  bigint,
    captured_micro  bigint,
    created_at      timestamptz,
    start_by        timestamptz,
    started_at      timestamptz,
    finished_at     timestamptz,
    poll_after      interval
);
COMMENT ON TYPE admission.job_status IS
'A job as its tenant may see it: nothing of the provider, the context or private results. position is 1 for the job the next claim of the tenant takes; beyond 1000 it is an estimate and position_exact is false.';

CREATE TYPE admission.balance AS (
    balance_micro     bigint,
    held_micro        bigint,
    available_micro   bigint,
    balance_usd       numeric,
    held_usd          numeric,
    available_usd     numeric,
    balance_credits   numeric,
    held_credits      numeric,
    available_credits numeric
);
COMMENT ON TYPE admission.balance IS
'balance = credited - captured; available = balance - held. Micro-USD, USD, and credits of policy.credit_micro each.';

CREATE TYPE admission.discrepancy AS (
    what    text,
    tenant  text,
    job_id  uuid,
    details jsonb
);
COMMENT ON TYPE admission.discrepancy IS 'One violated invariant, as verify() reports it.';

