-- The tables of a run, in Markdown: for each step and configuration the median rate, the lowest and highest, and the median
-- over the rounds of its ratio to the step it is compared with. Expects results, the CSV file that bench/run wrote.

\set ON_ERROR_STOP on
CREATE TEMP TABLE step (n serial, step text, script text, start text, tenants integer, counted text, compared_with text, what text);
CREATE TEMP TABLE result (round integer, synchronous_commit text, clients integer, step text, transactions bigint, failed bigint,
                          done bigint, tps numeric, latency_ms numeric, done_per_second numeric);
\copy step (step, script, start, tenants, counted, compared_with, what) FROM 'bench/steps.csv' CSV HEADER
\set copy '\\copy result FROM ' :'results' ' CSV HEADER'
:copy

CREATE TEMP TABLE config AS
    SELECT row_number() OVER (ORDER BY synchronous_commit, clients) AS n, synchronous_commit, clients,
           format('%s, %s', synchronous_commit, clients) AS title
      FROM (SELECT DISTINCT synchronous_commit, clients FROM result) c;

CREATE TEMP TABLE summary AS
    SELECT step, synchronous_commit, clients,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY r.done_per_second) AS median,
           min(r.done_per_second) AS lowest, max(r.done_per_second) AS highest,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY r.done_per_second / nullif(f.done_per_second, 0)) AS ratio
      FROM result r
      JOIN step s USING (step)
      LEFT JOIN LATERAL (SELECT f.done_per_second FROM result f
                          WHERE f.step = s.compared_with
                            AND (f.round, f.synchronous_commit, f.clients) = (r.round, r.synchronous_commit, r.clients)) f ON true
     GROUP BY step, synchronous_commit, clients;

-- the lines of a table: what is in the first column, then one cell per configuration
CREATE TEMP TABLE line (part text, n integer, cells text[]);
INSERT INTO line SELECT p, 0, ARRAY['step', 'compared with'] || array_agg(title ORDER BY n)
    FROM config, unnest(ARRAY['rates', 'ratios']) p GROUP BY p;
INSERT INTO line
    SELECT 'rates', s.n, ARRAY[s.step, s.compared_with] || array_agg(coalesce(
               format('%s (%s-%s)', round(m.median::numeric), round(m.lowest), round(m.highest)), '') ORDER BY c.n)
      FROM step s CROSS JOIN config c LEFT JOIN summary m USING (step, synchronous_commit, clients)
     GROUP BY s.n, s.step, s.compared_with HAVING count(m.median) > 0;
INSERT INTO line
    SELECT 'ratios', s.n, ARRAY[s.step, s.compared_with] || array_agg(coalesce(round(m.ratio::numeric, 2)::text, '') ORDER BY c.n)
      FROM step s CROSS JOIN config c LEFT JOIN summary m USING (step, synchronous_commit, clients)
     GROUP BY s.n, s.step, s.compared_with HAVING count(m.ratio) > 0;

CREATE FUNCTION pg_temp.markdown(wanted text) RETURNS SETOF text LANGUAGE sql AS $$
    WITH width AS (
        SELECT l.part, i, max(length(l.cells[i])) AS width FROM line l, generate_subscripts(l.cells, 1) i GROUP BY l.part, i
    ), padded AS (
        SELECT l.n, '| ' || string_agg(CASE WHEN i <= 2 THEN rpad(l.cells[i], w.width) ELSE lpad(l.cells[i], w.width) END, ' | ' ORDER BY i) || ' |' AS text
          FROM line l JOIN width w USING (part) WHERE l.part = wanted GROUP BY l.n, l.cells
        UNION ALL
        SELECT 0.5, '| ' || string_agg(CASE WHEN i <= 2 THEN repeat('-', width) ELSE repeat('-', width - 1) || ':' END, ' | ' ORDER BY i) || ' |'
          FROM width WHERE part = wanted
    )
    SELECT text FROM padded ORDER BY n
$$;

\echo 'Done a second, median (lowest-highest); columns are synchronous_commit and clients:'
\echo
SELECT * FROM pg_temp.markdown('rates');
\echo
\echo 'Ratio to the step compared with, in the same round (median over the rounds):'
\echo
SELECT * FROM pg_temp.markdown('ratios');
