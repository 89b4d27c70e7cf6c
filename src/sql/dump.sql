-- pg_dump carries every row and sequence.

DO $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT c.oid::regclass AS name FROM pg_catalog.pg_class c
              WHERE c.relnamespace = 'admission'::regnamespace AND c.relkind IN ('r', 'S') ORDER BY c.oid LOOP
        PERFORM pg_catalog.pg_extension_config_dump(r.name, '');
    END LOOP;
END $$;

