-- Money: in, held, captured, back; each movement once, whatever is repeated.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.tenant (tenant) VALUES ('a'), ('b'), ('s'), ('over'), ('fifty'), ('ref'), ('rev'), ('adj'), ('draft'), ('late'), ('risk'), ('huge');

-- money in: idempotent by reference, one namespace
SELECT is(pg_temp.brief(admission.top_up('a', 1000000, 'manual', 'pay-1')), 'recorded 200', 'a top-up');
SELECT is((SELECT string_agg(DISTINCT pg_temp.brief(admission.top_up('a', 1000000, 'manual', 'pay-1')), ', ') FROM generate_series(1, 20) i), 'already_recorded 200', 'delivered twenty times more');
SELECT is((SELECT count(*) FROM admission.billing WHERE reference = 'pay-1'), 1::bigint, 'one entry');
SELECT is(pg_temp.money('a'), '1000000 0 1000000', 'booked once');
SELECT is(pg_temp.brief(admission.top_up('a', 1000001, 'manual', 'pay-1')), 'reference_conflict 409 new', 'another amount is a conflict');
SELECT is((admission.top_up('b', 1000000, 'manual', 'pay-1')).code, 'reference_conflict', 'another tenant too');
SELECT is((admission.grant_credit('a', 1000000, 'grant', 'pay-1')).code, 'reference_conflict', 'another kind too');
SELECT is((admission.adjust('a', 1000000, 'pay-1')).code, 'reference_conflict', 'references are one namespace over all kinds');
SELECT is((admission.grant_credit('a', 500000, 'plan', 'plan-1')).code, 'recorded', 'plan credit');
SELECT is((admission.grant_credit('a', 500000, 'plan', 'plan-1')).code, 'already_recorded', 'once');
SELECT is((admission.grant_credit('a', 500000, 'grant', 'plan-1')).code, 'reference_conflict', 'a plan is no grant');
SELECT is(pg_temp.money('a'), '1500000 0 1500000', 'spendable together');
SELECT is(pg_temp.money('b'), '0 0 0', 'b has none of it');
SELECT is(pg_temp.field(admission.top_up('a', 5, 'gift', 'x')), 'invalid_request source', 'a source that is none');
SELECT is(pg_temp.field(admission.top_up('a', 5, NULL, 'x')), 'invalid_request source', 'source is mandatory');
SELECT is(pg_temp.field(admission.top_up('a', 0, 'auto', 'x')), 'invalid_request amount_micro', 'nothing');
SELECT is(pg_temp.field(admission.top_up('a', -5, 'auto', 'x')), 'invalid_request amount_micro', 'less than nothing');
SELECT is(pg_temp.field(admission.top_up('a', 5, 'auto', '')), 'invalid_request reference', 'without a reference');
SELECT is((admission.top_up('nobody', 5, 'auto', 'x')).code, 'unknown_tenant', 'to nobody');
SELECT is(pg_temp.field(admission.grant_credit('a', 5, 'top_up', 'x')), 'invalid_request kind', 'a kind that is none');
SELECT is((SELECT count(*) FROM admission.billing WHERE reference IN ('x', '')), 0::bigint, 'none of these was booked');

-- balance speaks micro-USD, USD and credits
SELECT is((admission.admit('a', 'j1', 'clip', '{}')).code, 'accepted', 'a hold');
SELECT is(admission.balance('a'), ROW(1500000, 100000, 1400000, 1.5, 0.1, 1.4, 150, 10, 140)::admission.balance, 'a credit is a cent');
UPDATE admission.policy SET credit_micro = 2500;
SELECT is((admission.balance('a')).available_credits, 560::numeric, 'or what the policy says');
UPDATE admission.policy SET credit_micro = 10000;

-- case 19: settling twice
CALL pg_temp.fund('s', 1000000);
SELECT is((SELECT string_agg((admission.admit('s', 's' || i, 'clip', '{}')).code, ' ') FROM generate_series(1, 6) i), 'accepted accepted accepted accepted accepted accepted', 'six jobs');
UPDATE admission.tenant SET concurrency_override = 10 WHERE tenant = 's';
SELECT is(pg_temp.claim(6, ARRAY['s']), 's1 s2 s3 s4 s5 s6', 'running');
CREATE TEMP TABLE once AS SELECT d.* FROM admission.settle(pg_temp.job('s', 's1'), 'completed', 80000, 'key-1') d;
SELECT is((SELECT concat_ws(' ', code, http_status) FROM once), 'settled 200', 'settled');
SELECT is((SELECT details @> '{"captured_micro": 80000, "released_micro": 20000, "overage_micro": 0, "unpriced": false}' FROM once), true, 'with its numbers');
CREATE TEMP TABLE twice AS SELECT d.* FROM admission.settle(pg_temp.job('s', 's1'), 'completed', 80000, 'key-1') d;
SELECT is((SELECT code FROM twice), 'already_settled', 'the same key: a replay');
SELECT is((SELECT details @> '{"captured_micro": 80000, "released_micro": 20000, "overage_micro": 0, "unpriced": false}' FROM twice), true, 'with the same numbers');
SELECT is((admission.settle(pg_temp.job('s', 's1'), 'completed', 80000, 'key-2')).code, 'already_settled', 'a new key: a replay');
SELECT is((admission.settle(pg_temp.job('s', 's1'), 'completed', 80000)).code, 'already_settled', 'no key: a replay');
SELECT is(pg_temp.brief(admission.settle(pg_temp.job('s', 's1'), 'completed', 80001, 'key-1')), 'settlement_conflict 409', 'the same key, another amount: a conflict');
SELECT is((admission.settle(pg_temp.job('s', 's1'), 'completed', 79999)).code, 'settlement_conflict', 'another amount: a conflict');
SELECT is((admission.settle(pg_temp.job('s', 's1'), 'failed')).code, 'settlement_conflict', 'release after capture: a conflict');
SELECT is(pg_temp.reserved('s', 's1'), 'captured 100000 80000 20000', 'the first one stands');
SELECT is(pg_temp.money('s'), '920000 500000 420000', 'one capture');
SELECT is(pg_temp.settle('s', 's2', 'failed'), 'settled', 'a failure');
SELECT is((admission.settle(pg_temp.job('s', 's2'), 'failed')).code, 'already_settled', 'twice');
SELECT is((admission.settle(pg_temp.job('s', 's2'), 'failed', 0)).code, 'already_settled', 'and with the amount of nothing');
SELECT is((admission.settle(pg_temp.job('s', 's2'), 'completed', 100000)).code, 'settlement_conflict', 'capture after release: a conflict');
SELECT is(pg_temp.reserved('s', 's2'), 'released 100000 0 100000', 'one release');
SELECT is(pg_temp.money('s'), '920000 400000 520000', 'of one hold');
SELECT is(pg_temp.settle('s', 's3', 'failed', 30000), 'settled', 'a failure of which a part is billed');
SELECT is(pg_temp.reserved('s', 's3'), 'captured 100000 30000 70000', 'captures that part');
SELECT is(pg_temp.settle('s', 's4', 'completed', 0), 'settled', 'a success that cost nothing');
SELECT is((SELECT concat_ws(' ', held_micro, captured_micro, released_micro, unpriced) FROM admission.reservation WHERE job_id = pg_temp.job('s', 's4')), '100000 0 100000 f', 'captures nothing, and is not unpriced');
SELECT is((SELECT array_agg(code ORDER BY evidence_no) FROM admission.evidence WHERE job_id = pg_temp.job('s', 's1')), '{settlement_conflict,settlement_conflict,settlement_conflict}', 'what contradicts is kept');

-- case 20: completed without an amount; more than the hold
SELECT is((admission.settle(pg_temp.job('s', 's5'), 'completed')).details @> '{"captured_micro": 100000, "released_micro": 0, "overage_micro": 0, "unpriced": true}', true, 'no amount: the hold is captured, flagged');
SELECT is((SELECT unpriced FROM admission.reservation WHERE job_id = pg_temp.job('s', 's5')), true, 'in the reservation too');
SELECT is((admission.settle(pg_temp.job('s', 's5'), 'completed')).code, 'already_settled', 'again: a replay');
SELECT is((admission.settle(pg_temp.job('s', 's6'), 'completed', 120000)).details @> '{"captured_micro": 120000, "released_micro": 0, "overage_micro": 20000, "unpriced": false}', true, '120 on a hold of 100');
SELECT is(pg_temp.reserved('s', 's6'), 'captured 100000 120000 0', 'is captured in full');
SELECT is(pg_temp.money('s'), '670000 0 670000', 'all adds up');

CALL pg_temp.fund('over', 100000);
SELECT is((admission.admit('over', 'o1', 'clip', '{}')).code, 'accepted', 'the last money held');
SELECT is(pg_temp.claim(1, ARRAY['over']), 'o1', 'running');
SELECT is(pg_temp.settle('over', 'o1', 'completed', 120000), 'settled', 'and dearer than that');
SELECT is(pg_temp.money('over'), '-20000 0 -20000', 'the balance goes below zero');
SELECT is((admission.admit('over', 'o2', 'clip', '{}')).code, 'insufficient_credits', 'which blocks new admissions');
SELECT is((admission.admit('over', 'o2', 'clip', '{}')).details @> '{"required_micro": 100000, "available_micro": -20000, "available_usd": -0.02, "available_credits": -2}', true, 'and is told');
CALL pg_temp.fund('over', 120000);
SELECT is((admission.admit('over', 'o2', 'clip', '{}')).code, 'accepted', 'until it is paid');

-- case 21: hold and release, fifty times, by failure and by cancel
CALL pg_temp.fund('fifty', 100000);
CREATE FUNCTION pg_temp.round(i integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    d admission.decision := admission.admit('fifty', 'f' || i, 'clip', '{}');
BEGIN
    IF i % 2 = 0 THEN
        RETURN d.code || ' ' || (admission.cancel('fifty', d.job_id)).code;
    END IF;
    RETURN d.code || ' ' || pg_temp.claim(1, ARRAY['fifty']) || ' ' || (admission.settle(d.job_id, 'failed')).code;
END $$;
SELECT is((SELECT count(DISTINCT pg_temp.round(i)) FROM generate_series(1, 50) i), 26::bigint, 'fifty rounds');
SELECT is((SELECT concat_ws(' ', count(*), sum(captured_micro), sum(released_micro), string_agg(DISTINCT state, ',')) FROM admission.reservation WHERE tenant = 'fifty'), '50 0 5000000 released', 'captured nothing, released all');
SELECT is(pg_temp.money('fifty'), '100000 0 100000', 'the money is all there');

-- refunds: of what was captured, never more
CALL pg_temp.fund('ref', 300000);
SELECT is((SELECT string_agg((admission.admit('ref', 'r' || i, 'clip', '{}')).code, ' ') FROM generate_series(1, 3) i), 'accepted accepted accepted', 'three jobs');
SELECT is(pg_temp.claim(2, ARRAY['ref']), 'r1 r2', 'two run');
SELECT is(pg_temp.settle('ref', 'r1', 'completed', 90000), 'settled', 'one completes');
SELECT is(pg_temp.settle('ref', 'r2', 'failed'), 'settled', 'one fails');
SELECT is(pg_temp.brief(admission.refund(pg_temp.job('ref', 'r1'), 60000, 'back-1', 'blurred')), 'recorded 200', 'a refund of a part');
SELECT is((admission.refund(pg_temp.job('ref', 'r1'), 60000, 'back-1', 'blurred')).code, 'already_recorded', 'once');
SELECT is((admission.refund(pg_temp.job('ref', 'r1'), 60001, 'back-1')).code, 'reference_conflict', 'with its amount');
SELECT is(pg_temp.money('ref'), '270000 100000 170000', 'balance up');
SELECT is((admission.refund(pg_temp.job('ref', 'r1'), 30001, 'back-2')).ok, false, 'more than is left of the capture');
SELECT is((admission.refund(pg_temp.job('ref', 'r1'), 30000, 'back-2')).code, 'recorded', 'the rest');
SELECT is((admission.refund(pg_temp.job('ref', 'r1'), 1, 'back-3')).ok, false, 'nothing is left');
SELECT is((admission.refund(pg_temp.job('ref', 'r2'), 1, 'back-3')).ok, false, 'a failed job cost nothing');
SELECT is((admission.refund(pg_temp.job('ref', 'r3'), 1, 'back-3')).ok, false, 'nor did a waiting one yet');
SELECT is(pg_temp.brief(admission.refund('00000000-0000-7000-8000-000000000000', 1, 'back-3')), 'not_found 404', 'a job that is none');
SELECT is(pg_temp.field(admission.refund(NULL, 1, 'back-3')), 'invalid_request job_id', 'no job');
SELECT is(pg_temp.field(admission.refund(pg_temp.job('ref', 'r1'), -1, 'back-3')), 'invalid_request amount_micro', 'a negative refund');
SELECT is(pg_temp.money('ref'), '300000 100000 200000', 'all that was captured is back');

-- reversals: of what was bought, never more
SELECT is((admission.top_up('rev', 30000000, 'manual', 'buy-1')).code, 'recorded', 'bought');
SELECT is((admission.grant_credit('rev', 1000000, 'grant', 'gift-1')).code, 'recorded', 'given');
SELECT is(pg_temp.brief(admission.reverse_top_up('buy-1', 10000000, 'cb-1', 'chargeback')), 'recorded 200', 'a part charged back');
SELECT is((admission.reverse_top_up('buy-1', 10000000, 'cb-1', 'chargeback')).code, 'already_recorded', 'once');
SELECT is((admission.reverse_top_up('buy-1', 9000000, 'cb-1')).code, 'reference_conflict', 'with its amount');
SELECT is((admission.reverse_top_up('buy-1', 20000001, 'cb-2')).ok, false, 'more than is left of the purchase');
SELECT is((admission.reverse_top_up('gift-1', 1000000, 'cb-2')).ok, false, 'a grant is no purchase');
SELECT is(pg_temp.brief(admission.reverse_top_up('buy-9', 1, 'cb-2')), 'not_found 404', 'a purchase that is none');
SELECT is(pg_temp.field(admission.reverse_top_up('buy-1', 0, 'cb-2')), 'invalid_request amount_micro', 'nothing');
SELECT is((admission.adjust('rev', -21000000, 'spent')).code, 'recorded', 'all is spent');
SELECT is((admission.reverse_top_up('buy-1', 20000000, 'cb-2')).code, 'recorded', 'and the rest charged back');
SELECT is(pg_temp.money('rev'), '-20000000 0 -20000000', 'below zero');

-- corrections
SELECT is(pg_temp.brief(admission.adjust('adj', 250000, 'fix-1', 'counted wrong')), 'recorded 200', 'up');
SELECT is((admission.adjust('adj', -300000, 'fix-2', 'counted wrong')).code, 'recorded', 'down, below zero too');
SELECT is((admission.adjust('adj', -300000, 'fix-2', 'counted wrong')).code, 'already_recorded', 'once');
SELECT is((admission.adjust('adj', 300000, 'fix-2')).code, 'reference_conflict', 'the sign is part of the amount');
SELECT is(pg_temp.money('adj'), '-50000 0 -50000', 'the sum');

-- overdraft and at_risk_micro
UPDATE admission.tenant SET overdraft_micro = 150000 WHERE tenant = 'draft';
SELECT is((admission.admit('draft', 'd1', 'clip', '{}')).code, 'accepted', 'an overdraft of 150 000 pays for one');
SELECT is(pg_temp.money('draft'), '0 100000 -100000', 'below zero');
SELECT is((admission.admit('draft', 'd2', 'clip', '{}')).code, 'insufficient_credits', 'not for two');
UPDATE admission.tenant SET overdraft_micro = 200000 WHERE tenant = 'draft';
SELECT is((admission.admit('draft', 'd2', 'clip', '{}')).code, 'accepted', 'one of 200 000 does, to the last micro-USD');
CALL pg_temp.fund('risk', 1000000);
UPDATE admission.tenant SET at_risk_micro = 199999 WHERE tenant = 'risk';
SELECT is((admission.admit('risk', 'r1', 'clip', '{}')).code, 'accepted', 'one job at risk');
SELECT is((admission.admit('risk', 'r2', 'clip', '{}')).code, 'budget_exhausted', 'two would be too much');
SELECT is((admission.admit('risk', 'r2', 'clip', '{}')).details @> '{"limit": 199999, "held": 100000}', true, 'with the numbers');
SELECT is(pg_temp.claim(1, ARRAY['risk']), 'r1', 'while it runs');
SELECT is((admission.admit('risk', 'r2', 'clip', '{}')).code, 'budget_exhausted', 'it is still at risk');
SELECT is(pg_temp.settle('risk', 'r1', 'completed', 100000), 'settled', 'once captured');
SELECT is((admission.admit('risk', 'r2', 'clip', '{}')).code, 'accepted', 'it is at risk no more');

-- success reported for a job that was ended by force
CALL pg_temp.fund('late', 600000);
SELECT is((SELECT string_agg((admission.admit('late', 'l' || i, 'clip', '{}', start_within => '1 minute')).code, ' ') FROM generate_series(1, 5) i), 'accepted accepted accepted accepted accepted', 'five jobs');
SELECT is((admission.cancel('late', pg_temp.job('late', 'l1'))).code, 'canceled', 'one is canceled');
SELECT is((admission.cancel('late', pg_temp.job('late', 'l2'))).code, 'canceled', 'and another');
CALL pg_temp.later('2 minutes');
SELECT is((admission.expire()).expired, 3, 'the others expire');
SELECT is(pg_temp.money('late'), '600000 0 600000', 'all holds are released');
SELECT is(pg_temp.brief(admission.settle(pg_temp.job('late', 'l1'), 'completed', 70000, attempt => NULL)), 'late_completion 200', 'absorb: a success for a canceled job');
SELECT is((admission.settle(pg_temp.job('late', 'l3'), 'completed', 70000)).code, 'late_completion', 'absorb: and for an expired one');
SELECT is(pg_temp.money('late'), '600000 0 600000', 'absorb: costs the tenant nothing');
UPDATE admission.policy SET late_completion = 'charge';
SELECT is((admission.settle(pg_temp.job('late', 'l4'), 'completed', 70000)).code, 'late_completion', 'charge: a success for an expired job');
SELECT is(pg_temp.money('late'), '530000 0 530000', 'charge: is booked');
SELECT is((admission.settle(pg_temp.job('late', 'l4'), 'completed', 70000)).ok, true, 'charge: told again');
SELECT is((admission.settle(pg_temp.job('late', 'l1'), 'completed', 70000)).ok, true, 'charge: what was absorbed before');
SELECT is(pg_temp.money('late'), '530000 0 530000', 'charge: is booked once, or never');
SELECT is((admission.settle(pg_temp.job('late', 'l5'), 'completed')).code, 'late_completion', 'charge: without an amount');
SELECT is(pg_temp.money('late'), '430000 0 430000', 'charge: what was held');
SELECT is(pg_temp.reserved('late', 'l1'), 'released 100000 0 100000', 'the reservation stays released');
SELECT is(pg_temp.state('late', 'l4'), 'expired/0', 'the state stays');
SELECT is((admission.settle(pg_temp.job('late', 'l2'), 'failed')).ok IS NOT NULL, true, 'a failure of a canceled job is answered');
SELECT is(pg_temp.money('late'), '430000 0 430000', 'and moves nothing');

-- amounts near the end of bigint
SELECT is((admission.top_up('huge', 9223372036854775807, 'manual', 'huge-1')).code, 'recorded', 'the largest amount');
SELECT throws_ok($$SELECT admission.top_up('huge', 1, 'manual', 'huge-2')$$, '22003', NULL, 'a micro-USD more is an error');
SELECT is((admission.adjust('huge', -9223372036854775807, 'huge-3')).code, 'recorded', 'and back');
SELECT is((admission.adjust('huge', -9223372036854775808, 'huge-4')).code, 'recorded', 'the smallest amount');
SELECT throws_ok($$SELECT admission.adjust('huge', -1, 'huge-5')$$, '22003', NULL, 'a micro-USD less is an error');
SELECT is((admission.balance('huge')).balance_micro, '-9223372036854775808'::bigint, 'the sum is exact');
SELECT is((admission.adjust('huge', 9223372036854775807, 'huge-6')).code, 'recorded', 'up again');
SELECT is((admission.adjust('huge', 1, 'huge-7')).code, 'recorded', 'to zero');
SELECT is(pg_temp.money('huge'), '0 0 0', 'exactly');
SELECT is((admission.admit('a', 'j2', 'clip', '{}')).code, 'accepted', 'a job');
SELECT is(pg_temp.claim(2, ARRAY['a']), 'j1 j2', 'runs');
SELECT throws_ok($$SELECT pg_temp.settle('a', 'j1', 'completed', 9223372036854775807), pg_temp.settle('a', 'j2', 'completed', 9223372036854775807)$$, '22003', NULL, 'captures beyond bigint are an error');
SELECT is(pg_temp.money('a'), '1500000 200000 1300000', 'and lose nothing');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
