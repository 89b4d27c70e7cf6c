/*
 * config.c
 *	  The configuration rows that decisions read: policy, tenant, model.
 *
 * They are read anew by every call, with the snapshot of its store, so an
 * edit counts from its commit.  Strings live in the caller's memory.
 */
#include "admission.h"

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "clock.h"
#include "config.h"

static int64
span_column(TupleTableSlot *row, int column)
{
	bool		valid;
	int64		micros = clock_span_micros(DatumGetIntervalP(COLUMN(row, column)), &valid);

	if (!valid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("an interval in admission.policy is out of range"),
				 errhint("Use less than a thousand years.")));
	return micros;
}

void
policy_read(Store *s, Policy *policy)
{
	TupleTableSlot *row = store_first(s, I_POLICY, ForwardScanDirection, 0, NULL);

	if (row == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("admission.policy has no row"),
				 errhint("Restore it: INSERT INTO admission.policy DEFAULT VALUES, then UPDATE it.")));
	policy->key_max_length = DatumGetInt32(COLUMN(row, POLICY_KEY_MAX_LENGTH));
	policy->top_up_window = span_column(row, POLICY_TOP_UP_WINDOW);
	policy->queue_factor = DatumGetInt32(COLUMN(row, POLICY_QUEUE_FACTOR));
	policy->queue_minimum = DatumGetInt32(COLUMN(row, POLICY_QUEUE_MINIMUM));
	policy->wave_fraction = DatumGetFloat8(DirectFunctionCall1(numeric_float8, COLUMN(row, POLICY_WAVE_FRACTION)));
	policy->default_lease = span_column(row, POLICY_DEFAULT_LEASE);
	policy->default_start_within = COLUMN_NULL(row, POLICY_DEFAULT_START_WITHIN) ? NO_TIME :
		span_column(row, POLICY_DEFAULT_START_WITHIN);
	policy->max_attempts = DatumGetInt32(COLUMN(row, POLICY_MAX_ATTEMPTS));
	policy->credit_micro = DatumGetInt64(COLUMN(row, POLICY_CREDIT_MICRO));
	policy->log_rejections = DatumGetBool(COLUMN(row, POLICY_LOG_REJECTIONS));
	policy->charge_late = strcmp(TextDatumGetCString(COLUMN(row, POLICY_LATE_COMPLETION)), "charge") == 0;
	policy->draining = DatumGetBool(COLUMN(row, POLICY_DRAINING));
}

static int32
int_or(TupleTableSlot *row, int column, int32 otherwise)
{
	return COLUMN_NULL(row, column) ? otherwise : DatumGetInt32(COLUMN(row, column));
}

static bool
fill_tenant(TupleTableSlot *row, Tenant *tenant)
{
	if (row == NULL)
		return false;
	tenant->id = DatumGetInt32(COLUMN(row, TENANT_ID));
	tenant->name = TextDatumGetCString(COLUMN(row, TENANT_TENANT));
	tenant->plan_id = COLUMN_NULL(row, TENANT_PLAN_ID) ? NULL : TextDatumGetCString(COLUMN(row, TENANT_PLAN_ID));
	tenant->observe = strcmp(TextDatumGetCString(COLUMN(row, TENANT_MODE)), "observe") == 0;
	tenant->suspended = !COLUMN_NULL(row, TENANT_SUSPENDED_AT);
	tenant->concurrency_override = int_or(row, TENANT_CONCURRENCY_OVERRIDE, -1);
	tenant->queued_override = int_or(row, TENANT_QUEUED_OVERRIDE, -1);
	tenant->override_expires_at = COLUMN_TIME(row, TENANT_OVERRIDE_EXPIRES_AT);
	tenant->submit_rate = COLUMN_NULL(row, TENANT_SUBMIT_RATE) ? 0 : DatumGetFloat8(COLUMN(row, TENANT_SUBMIT_RATE));
	tenant->submit_burst = int_or(row, TENANT_SUBMIT_BURST, 1);
	tenant->weight = DatumGetInt32(COLUMN(row, TENANT_WEIGHT));
	tenant->overdraft = DatumGetInt64(COLUMN(row, TENANT_OVERDRAFT));
	tenant->at_risk = COLUMN_NULL(row, TENANT_AT_RISK) ? -1 : DatumGetInt64(COLUMN(row, TENANT_AT_RISK));
	return true;
}

bool
tenant_find(Store *s, const char *name, Tenant *tenant)
{
	Bound		key[] = {EQUAL(1, CStringGetTextDatum(name))};

	return fill_tenant(store_first(s, I_TENANT, ForwardScanDirection, 1, key), tenant);
}

bool
tenant_read(Store *s, int32 tenant_id, Tenant *tenant)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(tenant_id))};

	return fill_tenant(store_first(s, I_TENANT_ID, ForwardScanDirection, 1, key), tenant);
}

static bool
fill_model(TupleTableSlot *row, Model *model)
{
	if (row == NULL)
		return false;
	model->id = DatumGetInt32(COLUMN(row, MODEL_ID));
	model->name = TextDatumGetCString(COLUMN(row, MODEL_MODEL));
	model->provider = TextDatumGetCString(COLUMN(row, MODEL_PROVIDER));
	model->enabled = DatumGetBool(COLUMN(row, MODEL_ENABLED));
	model->open_to_all = DatumGetBool(COLUMN(row, MODEL_OPEN));
	model->paused_until = COLUMN_TIME(row, MODEL_PAUSED_UNTIL);
	model->queue_while_paused = DatumGetBool(COLUMN(row, MODEL_QUEUE_WHILE_PAUSED));
	model->max_attempts = int_or(row, MODEL_MAX_ATTEMPTS, 0);
	return true;
}

bool
model_find(Store *s, const char *name, Model *model)
{
	Bound		key[] = {EQUAL(1, CStringGetTextDatum(name))};

	return fill_model(store_first(s, I_MODEL, ForwardScanDirection, 1, key), model);
}

bool
model_read(Store *s, int32 model_id, Model *model)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(model_id))};

	return fill_model(store_first(s, I_MODEL_ID, ForwardScanDirection, 1, key), model);
}

/* Whether the tenant may use the model at all. */
bool
model_open_to(Store *s, const Model *model, const Tenant *tenant)
{
	Bound		key[] = {EQUAL(1, CStringGetTextDatum(model->name)), EQUAL(2, CStringGetTextDatum(tenant->name))};

	return model->enabled &&
		(model->open_to_all || store_first(s, I_ACCESS, ForwardScanDirection, 2, key) != NULL);
}

bool
model_paused(const Model *model, TimestampTz now)
{
	return HAS_TIME(model->paused_until) && model->paused_until > now;
}

/* Whether queued jobs of the model may start. */
bool
model_may_start(const Model *model, TimestampTz now)
{
	return model->enabled && !model_paused(model, now);
}
