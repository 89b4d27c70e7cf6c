-- A transaction that rolls back, wholly or to a savepoint, leaves nothing.
-- What is seen inside a savepoint is kept in psql variables: pgTAP's own records would be rolled back with it.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.tenant (tenant, concurrency_override, submit_rate, submit_burst) VALUES ('r', 1, 1, 6);
UPDATE admission.policy SET global_outstanding_cap = 8;
CALL pg_temp.fund('r', 500000);
CREATE TABLE pg_temp.order_line (n integer CHECK (n > 0));

-- everything a rejection or a rollback must leave alone
CREATE FUNCTION pg_temp.everything() RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws('; ', pg_temp.money('r'), pg_temp.load('r'),
        (SELECT count(*) FROM admission.job), (SELECT count(*) FROM admission.intake), (SELECT count(*) FROM admission.dispatch), (SELECT count(*) FROM admission.billing),
        (SELECT count(*) FROM admission.queued), (SELECT count(*) FROM admission.processing), (SELECT count(*) FROM admission.ended), (SELECT count(*) FROM admission.deadline),
        (SELECT max(rate_clock) FROM admission.intake),
        (SELECT (admission.preview('r', 'probe', 'clip', '{}')).code)) $$;

SELECT is((admission.admit('r', 'base', 'clip', '{"n": 0}')).code, 'accepted', 'a job to begin with');
SELECT pg_temp.everything() AS before \gset

-- case 3: the caller's own statement fails
SAVEPOINT caller;
SELECT (admission.admit('r', 'k', 'clip', '{"n": 1}', start_within => '1 hour')).code AS inside, pg_temp.money('r') AS inside_money \gset
DO $$ BEGIN INSERT INTO pg_temp.order_line VALUES (-1); EXCEPTION WHEN check_violation THEN NULL; END $$;
ROLLBACK TO caller;
SELECT is(:'inside'::text, 'accepted', 'inside the savepoint it was accepted');
SELECT is(:'inside_money'::text, '500000 200000 300000', 'and held');
SELECT is(pg_temp.everything(), :'before', 'rolled back: counts, money, rate clock and key as before');
SELECT is((admission.admit('r', 'k', 'clip', '{"n": 2}')).code, 'accepted', 'the same key with another request');
SELECT pg_temp.everything() AS before \gset

-- claim, settle, cancel, top_up, requeue in savepoints
SAVEPOINT s;
SELECT pg_temp.claim() AS claimed, (admission.begin_submission(pg_temp.job('r', 'base'), 1)).code AS begun \gset
SELECT pg_temp.settle('r', 'base', 'completed', 90000) AS settled, pg_temp.money('r') AS settled_money \gset
SELECT (admission.cancel('r', pg_temp.job('r', 'k'))).code AS canceled, (admission.top_up('r', 30000000, 'auto', 'p1')).code AS topped_up \gset
ROLLBACK TO s;
SELECT is(concat_ws(' ', :'claimed', :'begun', :'settled', :'canceled', :'topped_up'), 'base submission_started settled canceled recorded', 'a whole life inside a savepoint');
SELECT is(:'settled_money'::text, '410000 100000 310000', 'moved money there');
SELECT is(pg_temp.everything(), :'before', 'and nothing of it is left');
SELECT is(pg_temp.state('r', 'base'), 'queued/0', 'the job waits');
SELECT is(pg_temp.claim(), 'base', 'and is claimed');
SELECT pg_temp.everything() AS before \gset

SAVEPOINT s;
SELECT (admission.requeue(pg_temp.job('r', 'base'), 1)).code AS requeued, pg_temp.claim() AS claimed \gset
ROLLBACK TO s;
SELECT is(concat_ws(' ', :'requeued', :'claimed'), 'requeued base', 'given back and taken again inside a savepoint');
SELECT is(pg_temp.state('r', 'base'), 'processing/none/1', 'the first claim stands');
SELECT is((admission.heartbeat(pg_temp.job('r', 'base'), 1)).code, 'lease_extended', 'with its attempt');
SELECT is(pg_temp.everything(), :'before', 'nothing else changed');

-- case 4: exception blocks
CREATE FUNCTION pg_temp.undone(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    code text;
BEGIN
    BEGIN
        code := (admission.admit('r', 'undone ' || n, 'clip', '{}')).code;
        RAISE EXCEPTION USING ERRCODE = 'division_by_zero';
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    RETURN code;
END $$;
SELECT is((SELECT string_agg(DISTINCT pg_temp.undone(i), ' ') FROM generate_series(1, 100) i), 'accepted', 'a hundred admissions, each undone by an exception, each find the room of the first');
SELECT is(pg_temp.everything(), :'before', 'nothing is left');

-- 1000 deep: each level admits inside a subtransaction of the level above; capacity stops some, the innermost error undoes all
SET LOCAL max_stack_depth = '6MB';
UPDATE admission.tenant SET concurrency_override = 2000, submit_rate = NULL, submit_burst = NULL WHERE tenant = 'r';
UPDATE admission.policy SET global_outstanding_cap = NULL;
CALL pg_temp.fund('r', 200000000);
CREATE FUNCTION pg_temp.deep(n integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    below integer := 0;
BEGIN
    BEGIN
        IF (admission.admit('r', 'deep ' || n, 'clip', '{}')).code <> 'accepted' THEN
            RAISE EXCEPTION 'not accepted at %', n;
        END IF;
        IF n < 1000 THEN
            below := pg_temp.deep(n + 1);
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'division_by_zero';
    EXCEPTION WHEN division_by_zero THEN RETURN below + 1;
    END;
END $$;
SELECT pg_temp.everything() AS before \gset
SELECT is(pg_temp.deep(1), 1000, 'a thousand subtransactions deep');
SELECT is(pg_temp.everything(), :'before', 'as before');

-- the other way round: the inner levels commit, the outermost is undone, then kept
CREATE FUNCTION pg_temp.nested(n integer, fail_at integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        PERFORM admission.admit('r', 'nested ' || n, 'clip', '{}');
        IF n < 100 THEN
            PERFORM pg_temp.nested(n + 1, fail_at);
        END IF;
        IF n = fail_at THEN
            RAISE EXCEPTION USING ERRCODE = 'division_by_zero';
        END IF;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
END $$;
SELECT lives_ok('SELECT pg_temp.nested(1, 1)', 'a hundred levels, undone by the outermost');
SELECT is(pg_temp.everything(), :'before', 'as before');
SELECT lives_ok('SELECT pg_temp.nested(1, 51)', 'a hundred levels, undone by the 51st');
SELECT is((SELECT count(*) FROM admission.job WHERE tenant = 'r' AND operation_key LIKE 'nested %'), 50::bigint, 'the outer 50 stay');
SELECT is(pg_temp.load('r'), '1 51', 'and count');

-- a refusal inside a savepoint leaves the caller's transaction usable, and what was accepted before it
SAVEPOINT s;
SELECT (admission.admit('r', 'nested 1', 'clip', '{"other": 1}')).code AS refused, (admission.admit('r', 'later', 'clip', '{}')).code AS accepted \gset
RELEASE s;
SELECT is(concat_ws(' ', :'refused', :'accepted'), 'idempotency_conflict accepted', 'a decision is never an exception');

-- a setting changed and rolled back
SAVEPOINT s;
UPDATE admission.policy SET global_outstanding_cap = 0;
SELECT (admission.admit('r', 'capped', 'clip', '{}')).code AS capped \gset
ROLLBACK TO s;
SELECT is(:'capped'::text, 'global_capacity', 'a cap set in a savepoint counts there');
SELECT is((admission.admit('r', 'capped', 'clip', '{}')).code, 'accepted', 'and is gone with it');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
