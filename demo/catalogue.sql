-- The models the studio sells and what they cost, in micro-USD. The extension itself ships no catalogue.

INSERT INTO admission.model (model, provider, mode) VALUES
    ('gemini-omni-flash',  'google', 'text-to-video'),
    ('grok-imagine-1.0',   'xai',    'text-to-video'),
    ('grok-imagine-1.5',   'xai',    'text-to-video');

-- Gemini Omni Flash: 0.10 USD a generation in 720P, 0.15 USD in 1080P; a request for any other resolution has no price and is refused.
INSERT INTO admission.price (model, match, unit_price_micro) VALUES
    ('gemini-omni-flash', '{"resolution": "720P"}',  100000),
    ('gemini-omni-flash', '{"resolution": "1080P"}', 150000);

-- Grok Imagine: 0.010 USD a second for 1.0, 0.022 USD for 1.5; whole seconds, 6 when the request names none.
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, default_quantity, min_quantity, max_quantity) VALUES
    ('grok-imagine-1.0', 'second', 10000, 'seconds', 6, 1, 15),
    ('grok-imagine-1.5', 'second', 22000, 'seconds', 6, 1, 15);
