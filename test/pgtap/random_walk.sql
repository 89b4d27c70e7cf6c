-- A random walk through all functions, the same for the same seed: after every stretch verify() is empty, and preview foretold every admit.
-- psql -v seed=0.7 -v steps=20000 -f test/pgtap/random_walk.sql walks elsewhere and further.
\if :{?seed}
\else
\set seed 0.5
\endif
\if :{?steps}
\else
\set steps 3000
\endif
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider, max_attempts) VALUES ('clip', 'p1', NULL), ('film', 'p1', 1), ('song', 'p2', NULL);
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000), ('song', 0);
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, default_quantity, max_quantity, hold) VALUES ('film', 'second', 10000, 'seconds', 5, 20, 'ceiling');
INSERT INTO admission.tenant (tenant, weight) VALUES ('a', 1), ('b', 3), ('c', 1), ('d', 1);
INSERT INTO admission.tenant (tenant, mode) VALUES ('e', 'observe');

CREATE TEMP TABLE claimed (job_id uuid PRIMARY KEY, attempt integer, tenant text);
CREATE TEMP TABLE seen (what text PRIMARY KEY, times integer NOT NULL);
CREATE FUNCTION pg_temp.one_of(VARIADIC choices text[]) RETURNS text LANGUAGE sql AS $$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;
CREATE FUNCTION pg_temp.some_job() RETURNS uuid LANGUAGE sql AS $$ SELECT job_id FROM admission.job_record ORDER BY tenant_id, job_no OFFSET floor(random() * (SELECT count(*) FROM admission.job_record)) LIMIT 1 $$;
-- mostly a running job with its attempt, else whatever was ever claimed, sometimes with the attempt before
CREATE FUNCTION pg_temp.some_claim(OUT job_id uuid, OUT attempt integer) LANGUAGE plpgsql AS $$
BEGIN
    IF random() < 0.7 THEN
        SELECT p.job_id, p.attempt INTO job_id, attempt FROM admission.processing p
         ORDER BY p.tenant_id, p.job_no OFFSET floor(random() * (SELECT count(*) FROM admission.processing)) LIMIT 1;
    ELSE
        SELECT c.job_id, c.attempt - (random() < 0.2)::int INTO job_id, attempt FROM claimed c JOIN admission.job_record r ON r.job_id = c.job_id
         ORDER BY r.tenant_id, r.job_no OFFSET floor(random() * (SELECT count(*) FROM claimed)) LIMIT 1;
    END IF;
END $$;

CREATE FUNCTION pg_temp.admit_some(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    tenant text := pg_temp.one_of('a', 'b', 'c', 'd', 'e', 'e');
    key text := 'k' || CASE WHEN random() < 0.1 THEN floor(random() * n)::int ELSE n END;
    model text := pg_temp.one_of('clip', 'film', 'song');
    request jsonb := CASE WHEN random() < 0.3 THEN jsonb_build_object('seconds', floor(random() * 25)) ELSE '{}' END;
    priority smallint := floor(random() * 3)::int - 1;
    start_within interval := CASE WHEN random() < 0.3 THEN make_interval(mins => 1 + floor(random() * 20)::int) END;
    max_ahead integer := CASE WHEN random() < 0.2 THEN floor(random() * 8) END;
    foretold admission.decision := admission.preview(tenant, key, model, request, '{}', priority, start_within, max_ahead, NULL);
    answer admission.decision := admission.admit(tenant, key, model, request, '{}', priority, start_within, max_ahead, NULL);
BEGIN
    IF replace(foretold.code, 'preview', 'accepted') <> answer.code OR foretold.limits IS DISTINCT FROM answer.limits
        OR foretold.reserved_micro IS DISTINCT FROM answer.reserved_micro THEN
        RETURN 'FALSE PREVIEW ' || foretold::text || ' ' || answer::text;
    END IF;
    RETURN 'admit ' || answer.code;
END $$;

CREATE FUNCTION pg_temp.claim_some() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    INSERT INTO claimed SELECT c.job_id, c.attempt, c.tenant
      FROM admission.claim_next('w', 1 + floor(random() * 4)::int, make_interval(mins => 1 + floor(random() * 9)::int),
               tenants => CASE WHEN random() < 0.2 THEN ARRAY[pg_temp.one_of('a', 'b', 'c', 'd', 'e')] END,
               models => CASE WHEN random() < 0.2 THEN ARRAY[pg_temp.one_of('clip', 'film', 'song')] END, begin => random() < 0.2) c
        ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN 'claim_next ' || CASE n WHEN 0 THEN 'nothing' ELSE 'something' END;
END $$;

CREATE FUNCTION pg_temp.step(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    job uuid;
    attempt integer;
    dice double precision := random();
    expired record;
BEGIN
    SELECT c.job_id, c.attempt INTO job, attempt FROM pg_temp.some_claim() c;
    CASE
        WHEN dice < 0.25 THEN RETURN pg_temp.admit_some(n);
        WHEN dice < 0.45 THEN RETURN pg_temp.claim_some();
        WHEN dice < 0.54 THEN RETURN 'begin ' || (admission.begin_submission(job, attempt)).code;
        WHEN dice < 0.60 THEN RETURN 'submitted ' || (admission.submitted(job, attempt, 'p-' || job)).code;
        WHEN dice < 0.63 THEN RETURN 'unknown ' || (admission.report_unknown(job, attempt)).code;
        WHEN dice < 0.66 THEN RETURN 'heartbeat ' || (admission.heartbeat(job, attempt)).code;
        WHEN dice < 0.72 THEN RETURN 'requeue ' || (admission.requeue(job, attempt, CASE WHEN random() < 0.4 THEN make_interval(mins => floor(random() * 10)::int) END, 'why', random() < 0.5)).code;
        WHEN dice < 0.84 THEN RETURN 'settle ' || (admission.settle(job, pg_temp.one_of('completed', 'completed', 'failed'),
                CASE WHEN random() < 0.7 THEN floor(random() * 250000)::bigint END, attempt => CASE WHEN random() < 0.5 THEN attempt END)).code;
        WHEN dice < 0.86 THEN RETURN 'settle any ' || (admission.settle(pg_temp.some_job(), pg_temp.one_of('completed', 'failed'), 1000)).code;
        WHEN dice < 0.89 THEN RETURN 'cancel ' || (SELECT (admission.cancel(t.tenant, r.job_id)).code FROM admission.job_record r JOIN admission.tenant t USING (tenant_id) WHERE r.job_id = (SELECT pg_temp.some_job()));
        WHEN dice < 0.905 THEN RETURN 'top_up ' || (admission.top_up(pg_temp.one_of('a', 'b', 'c', 'd'), pg_temp.one_of('300000', '2000000', '30000000')::bigint, 'auto', 't' || n)).code;
        WHEN dice < 0.915 THEN RETURN 'reverse ' || (admission.reverse_top_up('t' || floor(random() * n)::int, 100000, 'r' || n)).code;
        WHEN dice < 0.925 THEN RETURN 'refund ' || (admission.refund(pg_temp.some_job(), 10000, 'f' || n)).code;
        WHEN dice < 0.93 THEN RETURN 'adjust ' || (admission.adjust(pg_temp.one_of('a', 'b'), floor(random() * 2000000 - 1000000)::bigint, 'j' || n)).code;
        WHEN dice < 0.95 THEN
            expired := admission.expire(1 + floor(random() * 10)::int);
            RETURN 'expire ' || CASE WHEN expired.expired + expired.requeued + expired.failed + expired.unknown = 0 THEN 'nothing' ELSE 'something' END;
        WHEN dice < 0.98 THEN
            CALL pg_temp.later(make_interval(secs => random() * 120));
            RETURN 'later';
        WHEN dice < 0.985 THEN
            UPDATE admission.tenant SET concurrency_override = nullif(floor(random() * 8)::int, 0), queued_jobs_override = nullif(floor(random() * 8)::int, 0),
                   submit_rate = CASE WHEN random() < 0.3 THEN 0.05 END, submit_burst = 2, at_risk_micro = CASE WHEN random() < 0.3 THEN 500000 END,
                   override_expires_at = admission.clock() + make_interval(mins => floor(random() * 10)::int), overdraft_micro = floor(random() * 2) * 100000
             WHERE tenant.tenant = (SELECT pg_temp.one_of('a', 'b', 'c', 'd', 'e'));
            RETURN 'tenant edited';
        WHEN dice < 0.99 THEN
            UPDATE admission.model SET paused_until = CASE WHEN random() < 0.5 THEN admission.clock() + make_interval(mins => floor(random() * 5)::int) END, queue_while_paused = random() < 0.5
             WHERE model.model = (SELECT pg_temp.one_of('clip', 'film', 'song'));
            RETURN 'model edited';
        WHEN dice < 0.995 THEN
            UPDATE admission.policy SET global_outstanding_cap = CASE WHEN random() < 0.5 THEN floor(random() * 40)::int END, late_completion = pg_temp.one_of('absorb', 'charge');
            RETURN 'policy edited';
        WHEN n > 1000000 THEN RETURN pg_temp.claim_some();
        ELSE
            BEGIN
                FOR i IN 1..20 LOOP
                    PERFORM pg_temp.step(1000000 + n * 20 + i);
                END LOOP;
                RAISE EXCEPTION USING ERRCODE = 'division_by_zero';
            EXCEPTION WHEN division_by_zero THEN RETURN 'twenty steps undone';
            END;
    END CASE;
END $$;

-- walks, counts what happened, and stops at the first thing that is wrong
CREATE FUNCTION pg_temp.walk(steps integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    happened text;
    wrong text;
BEGIN
    FOR n IN 1..steps LOOP
        happened := pg_temp.step(n);
        IF happened LIKE 'FALSE%' THEN
            RETURN n || ': ' || happened;
        END IF;
        INSERT INTO seen VALUES (coalesce(happened, 'no job yet'), 1) ON CONFLICT (what) DO UPDATE SET times = seen.times + 1;
        IF n % 100 = 0 THEN
            SELECT string_agg(v::text, '; ') INTO wrong FROM admission.verify() v;
            IF wrong IS NOT NULL THEN
                RETURN n || ': ' || wrong;
            END IF;
        END IF;
    END LOOP;
    RETURN 'all right';
END $$;
SELECT setseed(:seed) \g /dev/null
SELECT is(pg_temp.walk(:steps), 'all right', 'a walk of ' || :steps || ' steps from seed ' || :seed);
SELECT diag(what || ': ' || times) FROM seen WHERE current_setting('client_min_messages') = 'debug1' ORDER BY what;
SELECT cmp_ok((SELECT count(*) FROM seen), '>=', 50::bigint, 'which met many situations');

-- to the end: whatever is left can be finished, and then nothing is held
UPDATE admission.policy SET global_outstanding_cap = NULL;
UPDATE admission.model SET paused_until = NULL;
UPDATE admission.tenant SET concurrency_override = 1000, override_expires_at = NULL;
CALL pg_temp.later('1 hour');
CREATE FUNCTION pg_temp.finish_all() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c record;
BEGIN
    PERFORM admission.expire(100000);
    PERFORM admission.settle(job_id, 'failed') FROM admission.processing;
    FOR i IN 1..1000 LOOP
        SELECT * INTO c FROM admission.claim_next('w');
        EXIT WHEN NOT FOUND;
        PERFORM admission.settle(c.job_id, 'failed');
    END LOOP;
    RETURN (SELECT concat_ws(' ', count(*) FILTER (WHERE finished_at IS NULL), (SELECT sum(held_micro) FROM admission.tenant_load)) FROM admission.job);
END $$;
SELECT is(pg_temp.finish_all(), '0 0', 'every job can be claimed and ended; nothing stays held');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
