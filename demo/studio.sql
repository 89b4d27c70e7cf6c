-- The studio's own side: its products, the films its four shops want of them, and the shops' money.
-- Run from the top of the tree, after demo/catalogue.sql.

CREATE SCHEMA studio;

CREATE TABLE studio.product (
    sku text PRIMARY KEY, shop text NOT NULL, name text NOT NULL, category text NOT NULL,
    material text NOT NULL, finish text NOT NULL, price_usd numeric NOT NULL, description text NOT NULL
);
\copy studio.product FROM 'demo/products.csv' WITH (FORMAT csv, HEADER)

-- One film per product. The first columns are the arguments of admission.admit; answer and job_id are what it said.
CREATE TABLE studio.film (
    operation_key text PRIMARY KEY, model text NOT NULL, request jsonb NOT NULL, context jsonb NOT NULL,
    priority smallint NOT NULL, start_within interval,
    shop text NOT NULL, place integer NOT NULL, answer text, job_id uuid,
    UNIQUE (shop, place)
);

WITH numbered AS (
    SELECT p.*, (row_number() OVER (PARTITION BY shop ORDER BY sku))::integer AS place,
           format('Product film, %s. %s in %s, %s. %s Slow camera move, soft daylight, plain background, no text.',
                  category, name, material, finish, description) AS prompt
      FROM studio.product p
)
INSERT INTO studio.film
SELECT 'film/' || sku, wish.model, jsonb_build_object('prompt', prompt) || wish.request, jsonb_build_object('sku', sku, 'category', category),
       CASE WHEN shop = 'fellside' AND place % 10 = 0 THEN 5 ELSE 0 END,                          -- rush orders overtake
       CASE WHEN shop = 'pearlhouse' AND place % 20 = 0 THEN interval '5 seconds' END,            -- worthless if late
       shop, place
  FROM numbered
 CROSS JOIN LATERAL (
    SELECT 'gemini-omni-flash' AS model, '{"resolution": "1080P"}'::jsonb AS request
     WHERE shop = 'clayworks' OR shop = 'northlight' AND price_usd >= 200
    UNION ALL
    SELECT 'gemini-omni-flash', '{"resolution": "720P"}'
     WHERE shop = 'northlight' AND price_usd < 200 OR shop = 'pearlhouse' AND price_usd >= 500
    UNION ALL
    SELECT 'grok-imagine-1.5', jsonb_build_object('seconds', 6 + 2 * (place % 3))
     WHERE shop = 'fellside'
    UNION ALL
    SELECT 'grok-imagine-1.0', '{}'
     WHERE shop = 'pearlhouse' AND price_usd < 500
 ) AS wish;

-- All together may have 400 jobs outstanding; a shop may have as many at once as its top-ups of the last 28 days earn.
UPDATE admission.policy SET global_outstanding_cap = 400;
INSERT INTO admission.tenant (tenant, plan_id) VALUES
    ('northlight', 'business'), ('fellside', 'business'), ('pearlhouse', 'starter'), ('clayworks', 'free');

SELECT shop, paid, (d).code, (d).message
  FROM (VALUES (1, 'northlight', '1000 USD topped up'), (2, 'fellside', '100 USD topped up'), (3, 'fellside', 'the same payment reported again'),
               (4, 'pearlhouse', '25 USD topped up'), (5, 'clayworks', '1.50 USD granted')) AS money (n, shop, paid)
 CROSS JOIN LATERAL (
    SELECT CASE n WHEN 1 THEN admission.top_up('northlight', 1000000000, 'manual', 'payment/1001')
                  WHEN 2 THEN admission.top_up('fellside', 100000000, 'auto', 'payment/1002')
                  WHEN 3 THEN admission.top_up('fellside', 100000000, 'auto', 'payment/1002')
                  WHEN 4 THEN admission.top_up('pearlhouse', 25000000, 'manual', 'payment/1003')
                  ELSE admission.grant_credit('clayworks', 1500000, 'grant', 'welcome/clayworks') END AS d
 ) AS booked ORDER BY n;
