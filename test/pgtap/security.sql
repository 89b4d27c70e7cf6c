-- Who may do what: PUBLIC nothing, a granted role only through functions, nobody rewrites a journal.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

-- PUBLIC
SELECT is_empty($$SELECT nspname FROM pg_namespace, LATERAL aclexplode(nspacl) a WHERE nspname = 'admission' AND a.grantee = 0$$, 'PUBLIC has nothing on the schema');
SELECT is_empty($$SELECT c.relname FROM pg_class c, LATERAL aclexplode(coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's'::"char" ELSE 'r'::"char" END, c.relowner))) a
                   WHERE c.relnamespace = 'admission'::regnamespace AND c.relkind <> 'i' AND a.grantee = 0$$, 'PUBLIC has nothing on tables, views and sequences');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p, LATERAL aclexplode(coalesce(p.proacl, acldefault('f'::"char", p.proowner))) a
                   WHERE p.pronamespace = 'admission'::regnamespace AND a.grantee = 0$$, 'PUBLIC may execute nothing');
SELECT is_empty($$SELECT c.relname, t.attname FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid, LATERAL aclexplode(t.attacl) a WHERE c.relnamespace = 'admission'::regnamespace AND a.grantee = 0$$,
    'PUBLIC has nothing on columns');
SELECT is_empty($$SELECT 1 FROM pg_default_acl d WHERE d.defaclnamespace = 'admission'::regnamespace$$, 'nor will it get anything by default');

-- functions
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p
                   WHERE p.pronamespace = 'admission'::regnamespace AND p.provolatile = 'v' AND p.prorettype <> 'trigger'::regtype AND NOT p.prosecdef
                     AND p.proname <> 'clock'$$, 'what may write is SECURITY DEFINER, but for the clock');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p
                   WHERE p.pronamespace = 'admission'::regnamespace AND NOT coalesce(p.proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp']$$, 'every function has a pinned search_path');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
                   WHERE p.pronamespace = 'admission'::regnamespace AND p.proisstrict AND p.prorettype <> 'trigger'::regtype$$, 'none is STRICT: a null argument gets an answer');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p
                   WHERE p.pronamespace = 'admission'::regnamespace AND p.prorettype <> 'trigger'::regtype AND obj_description(p.oid, 'pg_proc') IS NULL$$, 'every function has a comment');
SELECT is_empty($$SELECT t.typname FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
                   WHERE t.typnamespace = 'admission'::regnamespace AND t.typcategory <> 'A' AND (t.typrelid = 0 OR c.relkind = 'c')
                     AND coalesce(obj_description(t.oid, 'pg_type'), obj_description(t.typrelid, 'pg_class')) IS NULL$$, 'every type has a comment');
SELECT is_empty($$SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'admission'::regnamespace AND c.relkind IN ('r', 'v', 'm') AND obj_description(c.oid, 'pg_class') IS NULL$$, 'every table and view has a comment');

-- tables
SELECT is_empty($$SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'admission'::regnamespace AND c.relkind = 'r'
                     AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)$$, 'every table has a primary key');
SELECT is_empty($$SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'admission'::regnamespace AND c.relkind IN ('r', 'S')
                     AND c.oid <> ALL ((SELECT extconfig FROM pg_extension WHERE extname = 'admission')::oid[])$$, 'pg_dump carries every table and sequence');
SELECT is_empty($$SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'admission'::regnamespace AND c.relkind IN ('r', 'S', 'v')
                     AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('e', 'i'))$$, 'all of them belong to the extension');

-- journals only grow
INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.tenant (tenant) VALUES ('a');
CALL pg_temp.fund('a', 1000000);
SELECT is((admission.admit('a', 'j1', 'clip', '{}')).code, 'accepted', 'a row in each journal: intake and billing');
SELECT is(pg_temp.claim(), 'j1', 'dispatch');
SELECT throws_ok(format(action, journal), '55000', NULL, format(action, journal))
  FROM unnest(ARRAY['intake', 'dispatch', 'billing']) journal, unnest(ARRAY['UPDATE admission.%I SET at = now()', 'DELETE FROM admission.%I', 'TRUNCATE admission.%I', 'DELETE FROM admission.%I WHERE false']) action;
SELECT throws_ok('DELETE FROM admission.policy', '55000', NULL, 'the policy row cannot be deleted');
SELECT throws_ok('TRUNCATE admission.policy', '55000', NULL, 'nor truncated');
SELECT throws_ok('INSERT INTO admission.policy DEFAULT VALUES', '23505', NULL, 'nor doubled');
SELECT throws_ok('DELETE FROM admission.tenant', '23503', NULL, 'a tenant with a history stays');
SELECT throws_ok('DELETE FROM admission.model', '23503', NULL, 'a model with jobs stays');
INSERT INTO admission.tenant (tenant) VALUES ('mistake');
SELECT lives_ok($$DELETE FROM admission.tenant WHERE tenant = 'mistake'$$, 'one that has none may go');

-- a role that is granted the functions
CREATE ROLE admission_test_backend;
GRANT USAGE ON SCHEMA admission TO admission_test_backend;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA admission TO admission_test_backend;
CREATE ROLE admission_test_stranger;

-- what a role gets: the value of an expression, or the SQLSTATE of an expression or statement
CREATE FUNCTION pg_temp.as_role(role text, expression text, statement text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    PERFORM set_config('role', role, true);
    BEGIN
        IF statement IS NULL THEN
            EXECUTE 'SELECT (' || expression || ')::text' INTO answer;
        ELSE
            EXECUTE statement;
        END IF;
    EXCEPTION WHEN OTHERS THEN answer := SQLSTATE;
    END;
    PERFORM set_config('role', 'none', true);
    RETURN answer;
END $$;
SELECT is(pg_temp.as_role('admission_test_stranger', $$(admission.admit('a', 'x', 'clip', '{}')).code$$), '42501', 'a stranger may not admit');
SELECT is(pg_temp.as_role('admission_test_stranger', $$SELECT count(*) FROM admission.tenant$$), '42501', 'nor look');
SELECT is(pg_temp.as_role('admission_test_backend', $$(admission.admit('a', 'j2', 'clip', '{}')).code$$), 'accepted', 'a granted role admits');
SELECT is(pg_temp.as_role('admission_test_backend', $$(admission.preview('a', 'j3', 'clip', '{}')).code$$), 'preview', 'previews');
SELECT is(pg_temp.as_role('admission_test_backend', $$SELECT count(*) FROM admission.claim_next('w')$$), '1', 'claims');
SELECT is(pg_temp.as_role('admission_test_backend', $$(SELECT status FROM admission.status_of('a', 'j2'))$$), 'processing', 'looks at a job');
SELECT is(pg_temp.as_role('admission_test_backend', $$(admission.settle((admission.status_of('a', 'j2')).job_id, 'completed', 1)).code$$), 'settled', 'settles');
SELECT is(pg_temp.as_role('admission_test_backend', $$(admission.balance('a')).balance_micro$$), '999999', 'asks for the balance');
SELECT is(pg_temp.as_role('admission_test_backend', $$(admission.top_up('a', 1, 'auto', 'x')).code$$), 'recorded', 'tops up');
SELECT is(pg_temp.as_role('admission_test_backend', $$(admission.generation_limits('a')).concurrency_limit$$), '2', 'asks for limits');
SELECT is(pg_temp.as_role('admission_test_backend', $$SELECT count(*) FROM admission.verify()$$), '0', 'verifies');
SELECT is(pg_temp.as_role('admission_test_backend', 'SELECT count(*) FROM admission.' || quote_ident(c.relname)), '42501', format('but may not read %s', c.relname))
  FROM pg_class c WHERE c.relnamespace = 'admission'::regnamespace AND c.relkind IN ('r', 'v') ORDER BY c.relname;
SELECT is(pg_temp.as_role('admission_test_backend', $$SELECT nextval('admission.ring_cursor')$$), '42501', 'nor draw from a sequence');
SELECT is(pg_temp.as_role('admission_test_backend', NULL, s), '42501', format('nor %s', s))
  FROM unnest(ARRAY['INSERT INTO admission.ring VALUES (1, 1)', 'UPDATE admission.policy SET draining = true', 'DELETE FROM admission.queued', 'TRUNCATE admission.job_record',
    'INSERT INTO admission.tenant (tenant) VALUES (''mine'')', 'CREATE TABLE admission.mine ()']) s;
SELECT is(pg_temp.as_role('admission_test_backend', $$admission.apply_global_cap()$$), '39P01', 'nor set the pool: only its trigger can');
SELECT is(pg_temp.as_role('admission_test_backend', $$set_config('admission.test_clock', '2030-01-01', true)$$), '42501', 'nor the clock');

-- a hostile search_path and temporary objects change nothing
CREATE FUNCTION public.hostile(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.hostile);
CREATE TEMP TABLE tenant (tenant text, tenant_id integer);
CREATE TEMP TABLE intake (tenant_id integer);
SET LOCAL search_path = public, pg_catalog, admission;
SELECT code AS hijack_admit FROM admission.admit('a', 'j4', 'clip', '{}') \gset
SELECT count(*) AS hijack_claim FROM admission.claim_next('w') \gset
SELECT count(*) AS hijack_verify FROM admission.verify() \gset
SELECT status AS hijack_status FROM admission.status_of('a', 'j4') \gset
RESET search_path;
DROP OPERATOR public.= (text, text);
SELECT is(:'hijack_admit'::text, 'accepted', 'admit under a hostile search_path');
SELECT is(:'hijack_claim'::text, '1', 'claim_next too');
SELECT is(:'hijack_status'::text, 'processing', 'status_of too');
SELECT is(:'hijack_verify'::text, '0', 'verify too');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
