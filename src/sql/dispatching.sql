-- Who is ready, and what becomes possible by time alone. Derived state: verify() can prove it from the rest.

CREATE TABLE admission.lane (
    tenant_id integer NOT NULL,
    lane_no   integer NOT NULL,
    priority  smallint NOT NULL,
    model_id  integer NOT NULL,
    PRIMARY KEY (tenant_id, lane_no),
    CONSTRAINT lane_identity UNIQUE (tenant_id, priority, model_id)
);
COMMENT ON TABLE admission.lane IS 'The lines of a tenant: jobs of one priority and model wait behind each other and behind nobody else. Created under lock I at the first job.';

CREATE TABLE admission.lane_head (
    tenant_id integer NOT NULL,
    lane_no   integer NOT NULL,
    version   bigint NOT NULL,
    head      bigint NOT NULL,
    PRIMARY KEY (tenant_id, lane_no, version)
);
COMMENT ON TABLE admission.lane_head IS 'Where to start reading a lane: no entry before head is live. The highest version counts. Written under lock D, now and then.';

CREATE TABLE admission.ring (
    tenant_id integer NOT NULL,
    entry     bigint NOT NULL,
    PRIMARY KEY (tenant_id, entry)
);
COMMENT ON TABLE admission.ring IS 'Tenants that may have a job to start: a multiset; anyone adds, only the holder of lock D takes off what it saw.';

CREATE SEQUENCE admission.ring_cursor MINVALUE 0 START 0;
COMMENT ON SEQUENCE admission.ring_cursor IS 'The tenant_id at which the last claim stopped.';

CREATE TABLE admission.due (
    at        timestamptz NOT NULL,
    tenant_id integer NOT NULL,
    entry     bigint NOT NULL,
    PRIMARY KEY (at, tenant_id, entry)
);
COMMENT ON TABLE admission.due IS 'When to look at a tenant because time alone may have changed something: the end of a lease, a delay, a pause.';

CREATE TABLE admission.deadline (
    start_by  timestamptz NOT NULL,
    tenant_id integer NOT NULL,
    job_no    bigint NOT NULL,
    lane_no   integer NOT NULL,
    PRIMARY KEY (start_by, tenant_id, job_no)
);
COMMENT ON TABLE admission.deadline IS 'Jobs that must start by a time, for expire().';

CREATE TABLE admission.pool (
    pool_id  integer PRIMARY KEY,
    capacity bigint
);
COMMENT ON TABLE admission.pool IS 'Counts shared by tenants. Pool 1 is policy.global_outstanding_cap. capacity null: counted, not limited.';

CREATE TABLE admission.pool_stripe (
    pool_id integer NOT NULL,
    stripe  integer NOT NULL,
    version bigint NOT NULL,
    tokens  bigint NOT NULL,
    bounded boolean NOT NULL,
    PRIMARY KEY (pool_id, stripe, version)
);
COMMENT ON TABLE admission.pool_stripe IS 'Free tokens of a pool in pieces, so that takers need not wait for each other; version counts down, the lowest is the newest. Stripes numbered 0 and below are debts, left by a lowered capacity or made by tenants in observe mode.';

