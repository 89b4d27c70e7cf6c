-- What an edit of the configuration sets off.

-- Defaults and restores: a dumped row replaces the default that CREATE EXTENSION made, and a default deleted before the dump is deleted again.

CREATE FUNCTION admission.replace_default() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key_column text := TG_ARGV[0];
    key_text   text := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    IF TG_TABLE_NAME = 'policy' AND NOT NEW.seeded AND EXISTS (SELECT FROM admission.policy) THEN
        RAISE EXCEPTION 'the policy has its one row'
            USING ERRCODE = 'unique_violation', HINT = 'Edit it with UPDATE admission.policy SET ....';
    END IF;
    EXECUTE format('DELETE FROM admission.%I t WHERE t.%I::text = $1 AND t.seeded', TG_TABLE_NAME, key_column) USING key_text;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION admission.replace_default() IS 'Trigger of the tables with defaults: a restored row replaces the default of its key.';

CREATE FUNCTION admission.remember_deleted_default() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.seeded AND (TG_OP = 'UPDATE' OR pg_trigger_depth() = 1) THEN
        INSERT INTO admission.deleted_default VALUES (TG_TABLE_NAME, to_jsonb(OLD) ->> TG_ARGV[0]) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION admission.remember_deleted_default() IS 'Trigger of the tables with defaults: remembers which were deleted or given another key.';

CREATE FUNCTION admission.rename_default() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.seeded := false;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION admission.rename_default() IS 'Trigger of the tables with defaults: with another key it is a row of the operator''s.';

CREATE FUNCTION admission.delete_default_again() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key_column text := CASE NEW.table_name WHEN 'concurrency_tier' THEN 'min_top_up_micro' WHEN 'decision_code' THEN 'code' END;
BEGIN
    EXECUTE format('DELETE FROM admission.%I t WHERE t.%I::text = $1 AND t.seeded', NEW.table_name, key_column) USING NEW.key;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION admission.delete_default_again() IS 'Trigger of deleted_default: a restore deletes what had been deleted.';

CREATE TRIGGER replace_default BEFORE INSERT ON admission.policy
    FOR EACH ROW EXECUTE FUNCTION admission.replace_default('singleton');
CREATE TRIGGER replace_default BEFORE INSERT ON admission.concurrency_tier
    FOR EACH ROW EXECUTE FUNCTION admission.replace_default('min_top_up_micro');
CREATE TRIGGER replace_default BEFORE INSERT ON admission.decision_code
    FOR EACH ROW EXECUTE FUNCTION admission.replace_default('code');
CREATE TRIGGER remember_deleted_default AFTER DELETE ON admission.concurrency_tier
    FOR EACH ROW EXECUTE FUNCTION admission.remember_deleted_default('min_top_up_micro');
CREATE TRIGGER remember_renamed_default AFTER UPDATE ON admission.concurrency_tier
    FOR EACH ROW WHEN (OLD.min_top_up_micro <> NEW.min_top_up_micro) EXECUTE FUNCTION admission.remember_deleted_default('min_top_up_micro');
CREATE TRIGGER rename_default BEFORE UPDATE ON admission.concurrency_tier
    FOR EACH ROW WHEN (OLD.min_top_up_micro <> NEW.min_top_up_micro) EXECUTE FUNCTION admission.rename_default();
CREATE TRIGGER remember_deleted_default AFTER DELETE ON admission.decision_code
    FOR EACH ROW EXECUTE FUNCTION admission.remember_deleted_default('code');
CREATE TRIGGER remember_renamed_default AFTER UPDATE ON admission.decision_code
    FOR EACH ROW WHEN (OLD.code <> NEW.code) EXECUTE FUNCTION admission.remember_deleted_default('code');
CREATE TRIGGER rename_default BEFORE UPDATE ON admission.decision_code
    FOR EACH ROW WHEN (OLD.code <> NEW.code) EXECUTE FUNCTION admission.rename_default();
CREATE TRIGGER delete_default_again AFTER INSERT ON admission.deleted_default
    FOR EACH ROW EXECUTE FUNCTION admission.delete_default_again();

-- The policy row cannot be missed.

CREATE FUNCTION admission.refuse_policy_loss() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the policy row cannot be removed'
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Edit it with UPDATE admission.policy SET ....';
END $$;
COMMENT ON FUNCTION admission.refuse_policy_loss() IS 'Trigger of policy: its row stays.';
CREATE TRIGGER refuse_loss BEFORE DELETE ON admission.policy
    FOR EACH ROW EXECUTE FUNCTION admission.refuse_policy_loss();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON admission.policy
    FOR EACH STATEMENT EXECUTE FUNCTION admission.refuse_policy_loss();

-- Windows are exact hours: days and months move with daylight saving and the calendar.

CREATE FUNCTION admission.check_policy() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF extract(year FROM NEW.top_up_window) <> 0 OR extract(month FROM NEW.top_up_window) <> 0 OR extract(day FROM NEW.top_up_window) <> 0 THEN
        RAISE EXCEPTION 'top_up_window must be given in hours, not %', NEW.top_up_window
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write 28 days as ''672 hours''.';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION admission.check_policy() IS 'Trigger of policy: windows are exact hours.';
CREATE TRIGGER check_policy BEFORE INSERT OR UPDATE ON admission.policy
    FOR EACH ROW EXECUTE FUNCTION admission.check_policy();

-- The global cap.

CREATE FUNCTION admission.apply_global_cap() RETURNS trigger
    LANGUAGE c SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'admission_apply_global_cap';
COMMENT ON FUNCTION admission.apply_global_cap() IS
'Gives the pool behind policy.global_outstanding_cap its new capacity. Waits for open transactions that hold pieces of the pool.';

CREATE TRIGGER apply_global_cap AFTER UPDATE ON admission.policy
    FOR EACH ROW WHEN (OLD.global_outstanding_cap IS DISTINCT FROM NEW.global_outstanding_cap)
    EXECUTE FUNCTION admission.apply_global_cap();

-- Wake-ups: whatever may make room puts the tenants it concerns on the ring, unconditionally.

CREATE FUNCTION admission.wake_tenant() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO admission.ring VALUES (NEW.tenant_id, (random() * 9e18)::bigint);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION admission.wake_tenant() IS 'Trigger of tenant: what may make room puts it on the ring.';
CREATE TRIGGER wake AFTER UPDATE ON admission.tenant
    FOR EACH ROW WHEN (OLD.concurrency_override IS DISTINCT FROM NEW.concurrency_override
        OR OLD.override_expires_at IS DISTINCT FROM NEW.override_expires_at
        OR OLD.suspended_at IS DISTINCT FROM NEW.suspended_at)
    EXECUTE FUNCTION admission.wake_tenant();

CREATE FUNCTION admission.wake_all() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO admission.ring SELECT t.tenant_id, (random() * 9e18)::bigint FROM admission.tenant t;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION admission.wake_all() IS 'Trigger of policy, concurrency_tier and model: what may make room puts all tenants on the ring.';
CREATE TRIGGER wake AFTER INSERT OR UPDATE OR DELETE ON admission.concurrency_tier
    FOR EACH STATEMENT EXECUTE FUNCTION admission.wake_all();
CREATE TRIGGER wake AFTER UPDATE ON admission.policy
    FOR EACH ROW WHEN (OLD.top_up_window IS DISTINCT FROM NEW.top_up_window OR OLD.draining IS DISTINCT FROM NEW.draining)
    EXECUTE FUNCTION admission.wake_all();
CREATE TRIGGER wake AFTER UPDATE ON admission.model
    FOR EACH ROW WHEN (OLD.paused_until IS DISTINCT FROM NEW.paused_until OR OLD.enabled IS DISTINCT FROM NEW.enabled)
    EXECUTE FUNCTION admission.wake_all();

-- Names and surrogate ids of what has a history stay; what names a model or tenant follows its new name or goes with it.

CREATE FUNCTION admission.refuse_loss_of_history() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_TABLE_NAME = 'tenant' THEN
        IF EXISTS (SELECT FROM admission.intake i WHERE i.tenant_id = OLD.tenant_id)
            OR EXISTS (SELECT FROM admission.billing b WHERE b.tenant_id = OLD.tenant_id) THEN
            RAISE EXCEPTION 'tenant "%" has a history', OLD.tenant
                USING ERRCODE = 'foreign_key_violation', HINT = 'Suspend it: UPDATE admission.tenant SET suspended_at = now() WHERE ....';
        END IF;
        DELETE FROM admission.model_access a WHERE a.tenant = OLD.tenant;
    ELSE
        IF EXISTS (SELECT FROM admission.lane l WHERE l.model_id = OLD.model_id)
            OR EXISTS (SELECT FROM admission.price p WHERE p.model = OLD.model) THEN
            RAISE EXCEPTION 'model "%" has jobs or prices', OLD.model
                USING ERRCODE = 'foreign_key_violation', HINT = 'Disable it: UPDATE admission.model SET enabled = false WHERE ....';
        END IF;
        DELETE FROM admission.model_access a WHERE a.model = OLD.model;
    END IF;
    RETURN OLD;
END $$;
COMMENT ON FUNCTION admission.refuse_loss_of_history() IS 'Trigger of tenant and model: what has a history cannot be deleted.';
CREATE TRIGGER refuse_loss BEFORE DELETE ON admission.tenant
    FOR EACH ROW EXECUTE FUNCTION admission.refuse_loss_of_history();
CREATE TRIGGER refuse_loss BEFORE DELETE ON admission.model
    FOR EACH ROW EXECUTE FUNCTION admission.refuse_loss_of_history();

CREATE FUNCTION admission.check_identity() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    id text := TG_TABLE_NAME || '_id';
BEGIN
    IF to_jsonb(OLD) -> id <> to_jsonb(NEW) -> id THEN
        RAISE EXCEPTION '% cannot be changed', id
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'It is the key of all states and journals.';
    END IF;
    IF TG_TABLE_NAME = 'tenant' THEN
        UPDATE admission.model_access a SET tenant = NEW.tenant WHERE a.tenant = OLD.tenant AND NEW.tenant <> OLD.tenant;
    ELSIF NEW.model <> OLD.model THEN
        IF EXISTS (SELECT FROM admission.lane l WHERE l.model_id = OLD.model_id) THEN
            RAISE EXCEPTION 'model "%" has jobs and keeps its name', OLD.model
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'The fingerprints of their operation keys contain it.',
                      HINT = 'Make a new model and disable this one.';
        END IF;
        UPDATE admission.price p SET model = NEW.model WHERE p.model = OLD.model;
        UPDATE admission.model_access a SET model = NEW.model WHERE a.model = OLD.model;
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION admission.check_identity() IS 'Trigger of tenant and model: ids stay, and so do names that fingerprints contain; prices and access follow a new name.';
CREATE TRIGGER check_identity AFTER UPDATE ON admission.tenant
    FOR EACH ROW WHEN (OLD.tenant_id <> NEW.tenant_id OR OLD.tenant <> NEW.tenant) EXECUTE FUNCTION admission.check_identity();
CREATE TRIGGER check_identity AFTER UPDATE ON admission.model
    FOR EACH ROW WHEN (OLD.model_id <> NEW.model_id OR OLD.model <> NEW.model) EXECUTE FUNCTION admission.check_identity();

-- What names a model or a tenant names one that exists. No foreign keys: a parallel restore loads tables in any order, each whole,
-- so a name is let through while the table it points to is empty; verify() reports what never came.

CREATE FUNCTION admission.check_names() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given text;
    named text;
    known boolean;
    anything boolean;
BEGIN
    FOREACH named IN ARRAY TG_ARGV LOOP
        given := to_jsonb(NEW) ->> named;
        EXECUTE format('SELECT EXISTS (SELECT FROM admission.%1$I WHERE %1$I = $1), EXISTS (SELECT FROM admission.%1$I)', named)
            INTO known, anything USING given;
        IF NOT known AND anything THEN
            RAISE EXCEPTION '% "%" does not exist', named, given
                USING ERRCODE = 'foreign_key_violation', HINT = format('INSERT INTO admission.%I first, or correct the name.', named);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION admission.check_names() IS 'Trigger of price and model_access: the models and tenants they name exist.';
CREATE TRIGGER check_names AFTER INSERT OR UPDATE ON admission.price
    FOR EACH ROW EXECUTE FUNCTION admission.check_names('model');
CREATE TRIGGER check_names AFTER INSERT OR UPDATE ON admission.model_access
    FOR EACH ROW EXECUTE FUNCTION admission.check_names('model', 'tenant');

-- Prices: of two patterns that one request could satisfy, one must contain the other.

CREATE FUNCTION admission.patterns_can_meet(a jsonb, b jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    k text;
BEGIN
    IF jsonb_typeof(a) <> jsonb_typeof(b) THEN
        RETURN false;
    ELSIF jsonb_typeof(a) = 'object' THEN
        FOR k IN SELECT x FROM jsonb_object_keys(a) x LOOP
            IF b ? k AND NOT admission.patterns_can_meet(a -> k, b -> k) THEN
                RETURN false;
            END IF;
        END LOOP;
        RETURN true;
    END IF;
    RETURN jsonb_typeof(a) = 'array' OR a = b;
END $$;
COMMENT ON FUNCTION admission.patterns_can_meet(jsonb, jsonb) IS 'Whether one request could contain both patterns.';

CREATE FUNCTION admission.check_price() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other jsonb;
BEGIN
    -- two sessions with prices of one model collide here, and get 40001 above READ COMMITTED
    UPDATE admission.model m SET model = m.model WHERE m.model = NEW.model;
    SELECT p.match INTO other FROM admission.price p
     WHERE p.model = NEW.model AND p.price_id <> NEW.price_id
       AND NOT p.match @> NEW.match AND NOT NEW.match @> p.match
       AND admission.patterns_can_meet(p.match, NEW.match) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'price match % of model "%" is ambiguous', NEW.match, NEW.model
            USING ERRCODE = 'exclusion_violation',
                  DETAIL = format('A request could satisfy both it and %s, and neither contains the other.', other),
                  HINT = 'Add to one of them the field that tells them apart.';
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION admission.check_price() IS 'Trigger of price: of two matches that one request could satisfy, one contains the other.';
CREATE CONSTRAINT TRIGGER check_price AFTER INSERT OR UPDATE ON admission.price
    NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION admission.check_price();

-- Journals only grow.

CREATE FUNCTION admission.refuse_journal_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'journal "%" refuses %', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'Its newest rows are the counters, and every row proves the next.',
              HINT = 'Correct money with admission.adjust(), admission.refund() or admission.reverse_top_up().';
END $$;
COMMENT ON FUNCTION admission.refuse_journal_change() IS 'Trigger of the journals: they only grow.';
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON admission.intake
    FOR EACH STATEMENT EXECUTE FUNCTION admission.refuse_journal_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON admission.dispatch
    FOR EACH STATEMENT EXECUTE FUNCTION admission.refuse_journal_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON admission.billing
    FOR EACH STATEMENT EXECUTE FUNCTION admission.refuse_journal_change();

