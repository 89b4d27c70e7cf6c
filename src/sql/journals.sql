-- Three append-only, gap-free journals per tenant, each under a lock of its own. The newest row is the counter.

CREATE TABLE admission.intake (
    tenant_id         integer NOT NULL,
    intake_no         bigint NOT NULL,
    at                timestamptz NOT NULL,
    jobs              integer NOT NULL,
    amount_micro      bigint NOT NULL,
    admitted          bigint NOT NULL,
    reserved_micro    bigint NOT NULL,
    rate_clock        timestamptz,
    dispatch_no       bigint NOT NULL,
    billing_no        bigint NOT NULL,
    concurrency_limit integer NOT NULL,
    accepted_limit    integer NOT NULL,
    overdraft_micro   bigint NOT NULL,
    observed          boolean NOT NULL,
    PRIMARY KEY (tenant_id, intake_no)
);
COMMENT ON TABLE admission.intake IS 'Journal of admissions, one row per call: jobs and amount_micro of the call, admitted and reserved_micro in total after it, and the dispatch and billing rows it decided on. Written under lock I.';

CREATE TABLE admission.dispatch (
    tenant_id         integer NOT NULL,
    dispatch_no       bigint NOT NULL,
    at                timestamptz NOT NULL,
    kind              text NOT NULL,
    job_no            bigint,
    job_id            uuid,
    attempt           integer,
    previous_no       bigint,
    departed          bigint NOT NULL,
    concluded         bigint NOT NULL,
    active            bigint NOT NULL,
    unreserved_micro  bigint NOT NULL,
    captured_micro    bigint NOT NULL,
    concurrency_limit integer,
    saturated         boolean NOT NULL,
    served            integer NOT NULL,
    due_at            timestamptz,
    worker            text,
    reason            text,
    PRIMARY KEY (tenant_id, dispatch_no)
);
COMMENT ON TABLE admission.dispatch IS 'Journal of what happens to accepted jobs, one row per job and step, and of the tenant''s place among the ready ones (parked). Totals after the row: departed (left the queue, less returns), concluded, active, unreserved_micro, captured_micro. previous_no chains the rows of one job. Written under lock D.';

CREATE TABLE admission.billing (
    tenant_id      integer NOT NULL,
    billing_no     bigint NOT NULL,
    at             timestamptz NOT NULL,
    kind           text NOT NULL,
    amount_micro   bigint NOT NULL,
    credited_micro bigint NOT NULL,
    reference      text NOT NULL COLLATE "C",
    source         text,
    job_id         uuid,
    reverses       text COLLATE "C",
    reason         text,
    PRIMARY KEY (tenant_id, billing_no),
    CONSTRAINT billing_reference UNIQUE (reference)
);
CREATE INDEX billing_job ON admission.billing (job_id) WHERE job_id IS NOT NULL;
COMMENT ON TABLE admission.billing IS 'Journal of money in and back: top_up, grant, plan, refund, reversal, adjustment. credited_micro is the total after the row. Written under lock B.';

CREATE TABLE admission.counted_top_up (
    tenant_id      integer NOT NULL,
    billing_no     bigint NOT NULL,
    at             timestamptz NOT NULL,
    amount_micro   bigint NOT NULL,
    reversed_micro bigint NOT NULL,
    PRIMARY KEY (tenant_id, billing_no)
);
CREATE INDEX counted_top_up_at ON admission.counted_top_up (tenant_id, at);
COMMENT ON TABLE admission.counted_top_up IS 'What each top-up counts towards the tier: amount less what was reversed, at the time of the top-up.';

