-- Bad input: a decision where a client is to blame, an error with a hint where the caller or the operator is.
\set SHOW_CONTEXT never
BEGIN;
SET LOCAL DateStyle = 'ISO';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL TimeZone = 'UTC';
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';
INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme'), ('film', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, max_quantity) VALUES ('film', 'second', 9000000000000, 'seconds', 10000000);
INSERT INTO admission.tenant (tenant) VALUES ('studio');
SELECT code FROM admission.top_up('studio', 10000000, 'manual', 'invoice 1');

-- what a client can get wrong
CREATE TEMP VIEW answers AS
    SELECT n, d.code, d.http_status, d.details ->> 'field' AS field
      FROM (VALUES (1, NULL, 'k', 'clip', '{}'::jsonb), (2, 'studio', NULL, 'clip', '{}'), (3, 'studio', '', 'clip', '{}'), (4, 'studio', repeat('k', 3000), 'clip', '{}'),
                   (5, 'studio', 'k', NULL, '{}'), (6, 'studio', 'k', 'clip', NULL), (7, 'studio', 'k', 'clip', '[]'), (8, 'studio', 'k', 'clip', 'null'),
                   (9, 'studio', 'k', 'film', '{}'), (10, 'studio', 'k', 'film', '{"seconds": -1}'), (11, 'studio', 'k', 'film', '{"seconds": "8"}'),
                   (12, 'studio', 'k', 'film', '{"seconds": 8.5}'), (13, 'studio', 'k', 'film', '{"seconds": 1e18}'), (14, 'nobody', 'k', 'clip', '{}'),
                   (15, 'studio', 'k', 'song', '{}')) x(n, tenant, operation_key, model, request),
           LATERAL admission.admit(x.tenant, x.operation_key, x.model, x.request) d;
SELECT * FROM answers ORDER BY n;
SELECT code, details ->> 'field' AS field FROM admission.admit('studio', 'k', 'clip', '{}', '[]');
SELECT code, details ->> 'field' AS field FROM admission.admit('studio', 'k', 'clip', '{}', start_within => '-1 hour');
SELECT code, details ->> 'field' AS field FROM admission.admit('studio', 'k', 'clip', '{}', max_ahead => -1);
SELECT code, details ->> 'field' AS field FROM admission.admit('studio', 'k', 'clip', '{}', max_cost_micro => -1);
SELECT code, details ->> 'field' AS field FROM admission.admit_many('studio', '[{"operation_key": "k", "model": "clip", "request": {}, "priority": "high"}, 7]');

-- what an operator or a worker can get wrong
SELECT code, details ->> 'field' AS field FROM admission.top_up('studio', -5, 'manual', 'invoice 2');
SELECT code, details ->> 'field' AS field FROM admission.top_up('studio', 5, 'present', 'invoice 2');
SELECT code, details ->> 'field' AS field FROM admission.settle(NULL, 'completed');
SELECT code FROM admission.begin_submission('00000000-0000-7000-8000-000000000000', 1);

-- errors
SAVEPOINT s;
SELECT code FROM admission.admit('studio', 'k', 'film', '{"seconds": 9000000}');
ROLLBACK TO s;
SELECT code FROM admission.top_up('studio', 9223372036854775807, 'manual', 'invoice 2');
ROLLBACK TO s;
SELECT count(*) FROM admission.claim_next('worker', 0);
ROLLBACK TO s;
SELECT count(*) FROM admission.list_jobs('studio', 'asleep');
ROLLBACK TO s;
SET admission.test_clock = 'noon';
ROLLBACK TO s;

-- and nothing is lost
SELECT balance_micro, held_micro, available_micro FROM admission.balance('studio');
SELECT count(*) AS jobs FROM admission.job;
SELECT * FROM admission.verify();
ROLLBACK;
