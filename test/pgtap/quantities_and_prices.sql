-- What one request costs: units, quantities, the most specific match, effective_from, ceilings.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('omni', 'p1'), ('grok-1.0', 'p2'), ('grok-1.5', 'p2'), ('voice', 'p3'), ('big', 'p3'), ('match', 'p4'), ('dated', 'p4'), ('held', 'p5'), ('deep', 'p5');
INSERT INTO admission.price (model, match, unit_price_micro) VALUES
    ('omni', '{"resolution": "720P"}', 100000), ('omni', '{"resolution": "1080P"}', 150000);
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, default_quantity, min_quantity, max_quantity) VALUES
    ('grok-1.0', 'second', 10000, 'seconds', 6, 2, 15);
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, allowed_quantities) VALUES
    ('grok-1.5', 'second', 22000, 'seconds', '{4,8,12}');
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field) VALUES ('voice', 'second', 10000, 'seconds');
INSERT INTO admission.tenant (tenant, concurrency_override) VALUES ('q', 1000);
CALL pg_temp.fund('q', 1000000000);

-- what a request would cost, or why it cannot be had
CREATE FUNCTION pg_temp.quote(model text, request jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT CASE d.code WHEN 'preview' THEN concat_ws(' ', d.reserved_micro, d.details #>> '{quote,micro}', d.details #>> '{quote,quantity}', d.details #>> '{quote,unit}')
                       WHEN 'invalid_request' THEN concat_ws(' ', d.code, d.details ->> 'field') ELSE d.code END
      FROM admission.preview('q', NULL, $1, $2) d $$;

-- case 13a and 13
SELECT is(pg_temp.quote('omni', '{"resolution": "720P"}'), '100000 100000 1 generation', 'Omni Flash at 720P');
SELECT is(pg_temp.quote('omni', '{"resolution": "1080P"}'), '150000 150000 1 generation', 'Omni Flash at 1080P');
SELECT is(pg_temp.quote('omni', '{"resolution": "720P", "seconds": 8}'), '100000 100000 1 generation', 'a price per generation is not multiplied by seconds');
SELECT is(pg_temp.quote('omni', '{"resolution": "720P", "seconds": "eight"}'), '100000 100000 1 generation', 'nor are they looked at');
SELECT is(pg_temp.quote('omni', '{"resolution": "4K"}'), 'unsupported_configuration', 'no price: unsupported, never free');
SELECT is(pg_temp.quote('omni', '{}'), 'unsupported_configuration', 'no resolution: no price either');
SELECT is(pg_temp.quote('grok-1.0', '{"seconds": 8}'), '80000 80000 8 second', 'eight seconds of Grok 1.0');
SELECT is(pg_temp.quote('grok-1.5', '{"seconds": 8}'), '176000 176000 8 second', 'eight seconds of Grok 1.5');
SELECT is((admission.preview('q', NULL, 'grok-1.5', '{"seconds": 8}')).details -> 'quote',
    '{"micro": 176000, "usd": 0.176, "credits": 17.6, "unit": "second", "quantity": 8}', 'the quote in micro-USD, USD and credits');
SELECT is((SELECT string_agg(DISTINCT d.code, ' ') FROM generate_series(1, 100) i, admission.admit('q', 'omni ' || i, 'omni', '{"resolution": "720P"}') d), 'accepted', '100 requests at 720P');
SELECT is(pg_temp.money('q'), '1000000000 10000000 990000000', 'hold 10 000 000');
SELECT is((SELECT string_agg(DISTINCT d.code, ' ') FROM generate_series(1, 100) i, admission.admit('q', 'omni+ ' || i, 'omni', '{"resolution": "1080P"}') d), 'accepted', '100 requests at 1080P');
SELECT is(pg_temp.money('q'), '1000000000 25000000 975000000', 'hold 15 000 000 more');

-- case 12: quantities
SELECT is(pg_temp.quote('grok-1.0', format('{"seconds": %s}', q)::jsonb), 'invalid_request seconds', format('seconds: %s is no positive whole number', q))
  FROM unnest(ARRAY['-1', '0', '"8"', '8.5', 'null', 'true', '[8]', '{}', '""', '-9223372036854775808', '1e-3', '0.9999999999999999999']) q;
SELECT is(pg_temp.quote('grok-1.0', format('{"seconds": %s}', q)::jsonb), '80000 80000 8 second', format('seconds: %s is 8', q)) FROM unnest(ARRAY['8', '8.0', '8e0', '0.8e1']) q;
SELECT is(pg_temp.quote('grok-1.0', format('{"seconds": %s}', q)::jsonb), 'unsupported_configuration', format('seconds: %s is not offered', q))
  FROM unnest(ARRAY['1', '16', '1e18', '9223372036854775807']) q;
SELECT ok(pg_temp.quote('grok-1.0', format('{"seconds": %s}', q)::jsonb) IN ('unsupported_configuration', 'invalid_request seconds'), format('seconds: %s is refused', q))
  FROM unnest(ARRAY['9223372036854775808', '1e400']) q;
SELECT is(pg_temp.quote('grok-1.0', '{"seconds": 2}'), '20000 20000 2 second', 'min_quantity is offered');
SELECT is(pg_temp.quote('grok-1.0', '{"seconds": 15}'), '150000 150000 15 second', 'max_quantity is offered');
SELECT is(pg_temp.quote('grok-1.5', format('{"seconds": %s}', q)::jsonb), 'unsupported_configuration', format('seconds: %s is not allowed', q)) FROM unnest(ARRAY['1', '6', '13', '1e18']) q;
SELECT is(pg_temp.quote('grok-1.5', '{}'), 'invalid_request seconds', 'missing, with no default');
SELECT is(pg_temp.quote('grok-1.0', '{"Seconds": 8}'), '60000 60000 6 second', 'field names are exact; the default is priced');
SELECT is((admission.preview('q', NULL, 'grok-1.0', '{"seconds": "8"}')).http_status, 400, 'http status of a bad quantity');

-- overflow
SELECT throws_ok($$SELECT pg_temp.quote('voice', '{"seconds": 1e18}')$$, '22003', NULL, 'price x quantity beyond bigint is an error');
SELECT throws_ok($$SELECT admission.admit('q', 'over', 'voice', '{"seconds": 922337203685478}')$$, '22003', NULL, 'just beyond');
SELECT is(pg_temp.quote('voice', '{"seconds": 922337203685477}'), 'insufficient_credits', 'just below');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('big', 9223372036854775807);
SELECT is(pg_temp.quote('big', '{}'), 'insufficient_credits', 'the largest price: what is held already is not added beyond bigint');
UPDATE admission.tenant SET at_risk_micro = 9223372036854775807, overdraft_micro = 9223372036854775807 WHERE tenant = 'q';
SELECT throws_ok($$SELECT admission.admit('q', 'over', 'big', '{}')$$, '22003', NULL, 'reserved in total beyond bigint is an error');
UPDATE admission.tenant SET at_risk_micro = NULL, overdraft_micro = 0 WHERE tenant = 'q';
SELECT is(pg_temp.money('q'), '1000000000 25000000 975000000', 'no hold came of any of these');

-- the default is priced and handed to the worker
SELECT is((admission.admit('q', 'default', 'grok-1.0', '{"prompt": "x"}')).reserved_micro, 60000::bigint, 'six seconds by default');
SELECT is((admission.admit('q', 'given', 'grok-1.0', '{"prompt": "x", "seconds": 7.0}')).reserved_micro, 70000::bigint, 'seven when asked for');
CREATE TEMP TABLE claimed AS SELECT c.* FROM admission.claim_next('w', 2, models => '{grok-1.0}') c;
SELECT results_eq('SELECT request, reserved_micro FROM claimed',
    $$VALUES ('{"prompt": "x", "seconds": 6}'::jsonb, 60000::bigint), ('{"prompt": "x", "seconds": 7}', 70000)$$, 'the worker gets the normalised request');
SELECT is((SELECT concat_ws(' ', r.unit, r.quantity, r.unit_price_micro, r.held_micro) FROM admission.reservation r WHERE r.job_id = pg_temp.job('q', 'default')),
    'second 6 10000 60000', 'the reservation keeps unit, quantity and unit price');

-- the most specific match
INSERT INTO admission.price (model, match, unit_price_micro) VALUES
    ('match', '{}', 1), ('match', '{"size": "L"}', 2), ('match', '{"size": "L", "audio": true}', 3), ('match', '{"size": "L", "audio": true, "tags": ["hd"]}', 4), ('match', '{"size": "S"}', 5);
SELECT is(pg_temp.quote('match', '{"prompt": "x"}'), '1 1 1 generation', 'only the general price matches');
SELECT is(pg_temp.quote('match', '{"size": "L"}'), '2 2 1 generation', 'a field more');
SELECT is(pg_temp.quote('match', '{"size": "L", "audio": false}'), '2 2 1 generation', 'another value is no match');
SELECT is(pg_temp.quote('match', '{"audio": true, "size": "L"}'), '3 3 1 generation', 'two fields');
SELECT is(pg_temp.quote('match', '{"audio": true, "size": "L", "tags": ["x", "hd", "y"]}'), '4 4 1 generation', 'containment, in arrays too');
SELECT is(pg_temp.quote('match', '{"size": "S", "audio": true}'), '5 5 1 generation', 'another branch');

-- ambiguity is refused at entry
SELECT throws_ok($$INSERT INTO admission.price (model, match, unit_price_micro) VALUES ('match', '{"audio": true}', 9)$$, '23P01', NULL, 'two prices that one request could satisfy');
SELECT throws_ok($$INSERT INTO admission.price (model, match, unit_price_micro) VALUES ('match', '{"tags": ["4k"]}', 9)$$, '23P01', NULL, 'arrays can always meet');
SELECT throws_ok($$UPDATE admission.price SET match = '{"audio": true}' WHERE unit_price_micro = 5$$, '23P01', NULL, 'an UPDATE is checked too');
SELECT throws_ok($$INSERT INTO admission.price (model, match, unit_price_micro) VALUES ('match', '{"size": "S"}', 9)$$, '23505', NULL, 'one price a match and date');
SELECT throws_ok($$INSERT INTO admission.price (model, match, unit_price_micro) VALUES ('deep', '{"a": {"x": 1}}', 1), ('deep', '{"a": {"y": 1}}', 2)$$, '23P01', NULL, 'nested objects can meet');
SELECT lives_ok($$INSERT INTO admission.price (model, match, unit_price_micro) VALUES ('deep', '{"a": {"x": 1}}', 1), ('deep', '{"a": {"x": 2, "y": 1}}', 2), ('deep', '{"a": 1}', 3)$$, 'what cannot meet is no ambiguity');

-- nonsense is refused at entry
SELECT throws_ok(format('INSERT INTO admission.price (model, unit_price_micro, %s) VALUES (''deep'', 5, %s)', c, v), '23514', NULL, format('price: %s = %s', c, v))
  FROM (VALUES ('match', '''[]'''), ('match', '''7'''), ('unit', ''''''), ('unit', '''second'''), ('quantity_field', ''''''), ('default_quantity', '0'), ('min_quantity', '0'),
    ('max_quantity', '0'), ('max_quantity, min_quantity', '1, 2'), ('allowed_quantities', '''{}'''), ('allowed_quantities', '''{1,NULL}'''),
    ('hold', '''most'''), ('hold, quantity_field', '''ceiling'', ''seconds''')) x(c, v);
SELECT throws_ok($$INSERT INTO admission.price (model, unit_price_micro) VALUES ('deep', -1)$$, '23514', NULL, 'price: a negative one');
SELECT throws_ok($$INSERT INTO admission.price (model, unit_price_micro) VALUES ('no such model', 1)$$, '23503', NULL, 'price: of no model');

-- effective_from, and case 14
INSERT INTO admission.price (model, unit_price_micro, effective_from) VALUES ('dated', 100, DEFAULT), ('dated', 200, '2026-03-01 13:00:00+00'), ('dated', 300, '2026-03-02 00:00:00+00');
INSERT INTO admission.price (model, match, unit_price_micro, effective_from) VALUES ('dated', '{"hd": true}', 1000, '2026-03-01 14:00:00+00');
SELECT is(pg_temp.quote('dated', '{"hd": true}'), '100 100 1 generation', 'a price of the future does not count');
SELECT is((admission.admit('q', 'before', 'dated', '{}')).reserved_micro, 100::bigint, 'admitted at the old price');
SET LOCAL admission.test_clock = '2026-03-01 12:59:59.999999+00';
SELECT is(pg_temp.quote('dated', '{}'), '100 100 1 generation', 'a microsecond before');
SET LOCAL admission.test_clock = '2026-03-01 13:00:00+00';
SELECT is(pg_temp.quote('dated', '{}'), '200 200 1 generation', 'from exactly then');
SELECT is((admission.admit('q', 'after', 'dated', '{}')).reserved_micro, 200::bigint, 'admit uses the price of now, whatever preview said before');
SELECT is((admission.admit('q', 'before', 'dated', '{}')).reserved_micro, 100::bigint, 'a replay tells what was reserved then');
SET LOCAL admission.test_clock = '2026-03-01 14:00:00+00';
SELECT is(pg_temp.quote('dated', '{"hd": true}'), '1000 1000 1 generation', 'per match: the special price is now in force');
SELECT is(pg_temp.quote('dated', '{}'), '200 200 1 generation', 'beside the general one');
SELECT is(pg_temp.claim(1, models => '{dated}'), 'before', 'the job runs');
UPDATE admission.price SET unit_price_micro = 5 WHERE model = 'dated';
SELECT is(pg_temp.settle('q', 'before', 'completed'), 'settled', 'and ends after the price was changed');
SELECT is(pg_temp.reserved('q', 'before'), 'captured 100 100 0', 'at the price it was admitted at');
DELETE FROM admission.price WHERE model = 'dated';
SELECT is(pg_temp.claim(1, models => '{dated}'), 'after', 'a job whose price was deleted');
SELECT is(pg_temp.settle('q', 'after', 'completed'), 'settled', 'settles');
SELECT is(pg_temp.reserved('q', 'after'), 'captured 200 200 0', 'at the price stored');

-- ceilings
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, max_quantity, hold) VALUES ('held', 'second', 42000, 'seconds', 10, 'ceiling');
SELECT is(pg_temp.quote('held', '{"seconds": 3}'), '420000 126000 3 second', 'hold = ceiling: reserved is unit price x max_quantity, the quote is the quote');
SELECT is((admission.preview('q', NULL, 'held', '{"seconds": 3}', max_cost_micro => 126000)).code, 'preview', 'max_cost_micro is about the quote');
SELECT is((admission.preview('q', NULL, 'held', '{"seconds": 3}', max_cost_micro => 125999)).code, 'cost_too_high', 'exactly');
SELECT is((admission.admit('q', 'held', 'held', '{"seconds": 3}')).reserved_micro, 420000::bigint, 'admitted');
SELECT is(pg_temp.claim(1, models => '{held}'), 'held', 'claimed');
SELECT is(pg_temp.settle('q', 'held', 'completed', 126000), 'settled', 'settled with what it cost');
SELECT is(pg_temp.reserved('q', 'held'), 'captured 420000 126000 294000', 'the rest goes back');
INSERT INTO admission.tenant (tenant) VALUES ('poor');
CALL pg_temp.fund('poor', 419999);
SELECT is((admission.admit('poor', 'held', 'held', '{"seconds": 3}')).code, 'insufficient_credits', 'what is held must be there');
SELECT is((admission.admit('poor', 'held', 'held', '{"seconds": 3}')).details -> 'required_micro', '420000', 'and is what is required');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
