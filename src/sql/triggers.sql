-- What an edit of the configuration sets off.

-- Defaults and restores: a dumped row replaces the default that CREATE EXTENSION made, and a default deleted before the dump is deleted again.

CREATE FUNCTION admission.replace_default() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key_column text := TG_ARGV[0];
    key_text   text := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    EXECUTE format('DELETE FROM admission.%I t WHERE t.%I::text = $1 AND t.seeded', TG_TABLE_NAME, key_column) USING key_text;
    RETURN NEW;
END $$;

CREATE FUNCTION admission.remember_deleted_default() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.seeded AND pg_trigger_depth() = 1 THEN
        INSERT INTO admission.deleted_default VALUES (TG_TABLE_NAME, to_jsonb(OLD) ->> TG_ARGV[0]) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION admission.delete_default_again() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key_column text := CASE NEW.table_name WHEN 'concurrency_tier' THEN 'min_top_up_micro' WHEN 'decision_code' THEN 'code' END;
BEGIN
    EXECUTE format('DELETE FROM admission.%I t WHERE t.%I::text = $1 AND t.seeded', NEW.table_name, key_column) USING NEW.key;
    RETURN NULL;
END $$;

CREATE TRIGGER replace_default BEFORE INSERT ON admission.policy
    FOR EACH ROW EXECUTE FUNCTION admission.replace_default('singleton');
CREATE TRIGGER replace_default BEFORE INSERT ON admission.concurrency_tier
    FOR EACH ROW EXECUTE FUNCTION admission.replace_default('min_top_up_micro');
CREATE TRIGGER replace_default BEFORE INSERT ON admission.decision_code
    FOR EACH ROW EXECUTE FUNCTION admission.replace_default('code');
CREATE TRIGGER remember_deleted_default AFTER DELETE ON admission.concurrency_tier
    FOR EACH ROW EXECUTE FUNCTION admission.remember_deleted_default('min_top_up_micro');
CREATE TRIGGER remember_deleted_default AFTER DELETE ON admission.decision_code
    FOR EACH ROW EXECUTE FUNCTION admission.remember_deleted_default('code');
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
CREATE TRIGGER wake AFTER INSERT OR UPDATE OR DELETE ON admission.concurrency_tier
    FOR EACH STATEMENT EXECUTE FUNCTION admission.wake_all();
CREATE TRIGGER wake AFTER UPDATE ON admission.policy
    FOR EACH ROW WHEN (OLD.top_up_window IS DISTINCT FROM NEW.top_up_window OR OLD.draining IS DISTINCT FROM NEW.draining)
    EXECUTE FUNCTION admission.wake_all();
CREATE TRIGGER wake AFTER UPDATE ON admission.model
    FOR EACH ROW WHEN (OLD.paused_until IS DISTINCT FROM NEW.paused_until OR OLD.enabled IS DISTINCT FROM NEW.enabled)
    EXECUTE FUNCTION admission.wake_all();

-- Names and surrogate ids of what has a history stay.

CREATE FUNCTION admission.refuse_loss_of_history() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_TABLE_NAME = 'tenant' THEN
        IF EXISTS (SELECT FROM admission.intake i WHERE i.tenant_id = OLD.tenant_id)
            OR EXISTS (SELECT FROM admission.billing b WHERE b.tenant_id = OLD.tenant_id) THEN
            RAISE EXCEPTION 'tenant "%" has a history', OLD.tenant
                USING ERRCODE = 'foreign_key_violation', HINT = 'Suspend it: UPDATE admission.tenant SET suspended_at = now() WHERE ....';
        END IF;
    ELSIF EXISTS (SELECT FROM admission.lane l WHERE l.model_id = OLD.model_id) THEN
        RAISE EXCEPTION 'model "%" has jobs', OLD.model
            USING ERRCODE = 'foreign_key_violation', HINT = 'Disable it: UPDATE admission.model SET enabled = false WHERE ....';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER refuse_loss BEFORE DELETE ON admission.tenant
    FOR EACH ROW EXECUTE FUNCTION admission.refuse_loss_of_history();
CREATE TRIGGER refuse_loss BEFORE DELETE ON admission.model
    FOR EACH ROW EXECUTE FUNCTION admission.refuse_loss_of_history();

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
    PERFORM 1 FROM admission.model m WHERE m.model = NEW.model FOR NO KEY UPDATE;
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
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON admission.intake
    FOR EACH STATEMENT EXECUTE FUNCTION admission.refuse_journal_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON admission.dispatch
    FOR EACH STATEMENT EXECUTE FUNCTION admission.refuse_journal_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON admission.billing
    FOR EACH STATEMENT EXECUTE FUNCTION admission.refuse_journal_change();

