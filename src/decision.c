/*
 * decision.c
 *	  Decisions: their codes, their details, and the composite they become.
 *
 * A decision is never an exception.  Everything lives in the memory of the
 * call.
 */
#include "admission.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/typcache.h"

#include "clock.h"
#include "decision.h"

PG_FUNCTION_INFO_V1(admission_decision_codes);

static const struct
{
	const char *code;
	bool		ok;
	int			http_status;
	bool		retryable;
	const char *retry_key;
	const char *message;
	const char *client;
}			codes[] = {
#define AS_ROW(id, ...) [CODE_##id] = {__VA_ARGS__},
	DECISION_CODES(AS_ROW)
#undef AS_ROW
};

enum
{
	DECISION_OK = 1, DECISION_CODE, DECISION_HTTP_STATUS, DECISION_RETRYABLE, DECISION_RETRY_AFTER,
	DECISION_RETRY_AFTER_SECONDS, DECISION_RETRY_KEY, DECISION_JOB_ID, DECISION_RESERVED,
	DECISION_MESSAGE, DECISION_DETAILS, DECISION_LIMITS
};

void
decide(Decision *d, Code code)
{
	memset(d, 0, sizeof(Decision));
	d->code = code;
	d->reserved = NO_AMOUNT;
}

/* The decision about an argument that a client can get wrong. */
void
decide_invalid(Decision *d, const char *field, const char *expected)
{
	decide(d, CODE_INVALID_REQUEST);
	details_text(&d->details, "field", field);
	details_text(&d->details, "expected", expected);
}

bool
code_ok(Code code)
{
	return codes[code].ok;
}

const char *
code_name(Code code)
{
	return codes[code].code;
}

static void
push(Details *details, JsonbIteratorToken token, JsonbValue *value)
{
	JsonbValue *result;

	if (details->state == NULL)
		(void) pushJsonbValue(&details->state, WJB_BEGIN_OBJECT, NULL);
	result = pushJsonbValue(&details->state, token, value);
	if (token == WJB_END_OBJECT)
		details->done = details->state == NULL ? JsonbValueToJsonb(result) : NULL;
}

static void
push_text(Details *details, JsonbIteratorToken token, const char *text)
{
	JsonbValue	value;

	value.type = jbvString;
	value.val.string.val = pstrdup(text);
	value.val.string.len = strlen(text);
	push(details, token, &value);
}

static void
push_numeric(Details *details, const char *key, Numeric number)
{
	JsonbValue	value;

	value.type = jbvNumeric;
	value.val.numeric = number;
	push_text(details, WJB_KEY, key);
	push(details, WJB_VALUE, &value);
}

void
details_int(Details *details, const char *key, int64 value)
{
	push_numeric(details, key, int64_to_numeric(value));
}

void
details_text(Details *details, const char *key, const char *text)
{
	JsonbValue	null = {.type = jbvNull};

	push_text(details, WJB_KEY, key);
	if (text)
		push_text(details, WJB_VALUE, text);
	else
		push(details, WJB_VALUE, &null);
}

void
details_bool(Details *details, const char *key, bool flag)
{
	JsonbValue	value = {
		.type = jbvBool,
		.val.boolean = flag
	};

	push_text(details, WJB_KEY, key);
	push(details, WJB_VALUE, &value);
}

/* A time as jsonb shows timestamps everywhere: ISO 8601. */
void
details_time(Details *details, const char *key, TimestampTz value)
{
	char		text[MAXDATELEN + 1];
	int			utc = 0;

	JsonEncodeDateTime(text, TimestampTzGetDatum(value), TIMESTAMPTZOID, &utc);
	details_text(details, key, text);
}

/* An amount three times: key_micro, key_usd, key_credits; without the prefix if key is NULL. */
void
details_money(Details *details, const char *key, int64 micro, int64 credit_micro)
{
	const char *prefix = key ? psprintf("%s_", key) : "";
	Numeric		credits;

	credits = DatumGetNumeric(DirectFunctionCall2(numeric_div, NumericGetDatum(int64_to_numeric(micro)),
												  NumericGetDatum(int64_to_numeric(credit_micro))));
	details_int(details, psprintf("%smicro", prefix), micro);
	push_numeric(details, psprintf("%susd", prefix),
				 DatumGetNumeric(DirectFunctionCall1(numeric_trim_scale, NumericGetDatum(int64_div_fast_to_numeric(micro, 6)))));
	push_numeric(details, psprintf("%scredits", prefix),
				 DatumGetNumeric(DirectFunctionCall1(numeric_trim_scale, NumericGetDatum(credits))));
}

/* Opens an array or object; key NULL inside an array. */
void
details_open(Details *details, const char *key, JsonbIteratorToken what)
{
	if (key)
		push_text(details, WJB_KEY, key);
	push(details, what, NULL);
}

void
details_close(Details *details, JsonbIteratorToken what)
{
	push(details, what, NULL);
}

/* The finished object. */
Jsonb *
details_jsonb(Details *details)
{
	if (details->done == NULL)
		push(details, WJB_END_OBJECT, NULL);
	return details->done;
}

/* Completes a decision whose parts are in memory that is about to go, in the current one. */
void
decision_keep(Decision *d)
{
	Jsonb	   *details = details_jsonb(&d->details);

	d->details.done = DatumGetJsonbPCopy(JsonbPGetDatum(details));
	d->details.state = NULL;
}

Datum
limits_datum(Oid type, const Standing *standing)
{
	TupleDesc	descriptor = lookup_rowtype_tupdesc(type, -1);
	Capacity	c = standing_capacity(standing);
	Datum		values[11];
	bool		nulls[11] = {false};
	Datum		result;

	nulls[0] = standing->tenant.plan_id == NULL;
	values[0] = nulls[0] ? (Datum) 0 : CStringGetTextDatum(standing->tenant.plan_id);
	values[1] = CStringGetTextDatum(standing->limits.overridden ? "admin_override" : "plan");
	values[2] = Int32GetDatum(standing->limits.purchased);
	values[3] = Int32GetDatum(standing->limits.concurrency);
	values[4] = Int32GetDatum(standing->limits.queued);
	values[5] = Int32GetDatum(standing->limits.accepted);
	values[6] = Int32GetDatum(c.active);
	values[7] = Int32GetDatum(c.queued);
	values[8] = Int32GetDatum(c.remaining);
	values[9] = Int32GetDatum(c.wave);
	values[10] = Int32GetDatum(c.budget);
	result = HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls));
	ReleaseTupleDesc(descriptor);
	return result;
}

/* The columns of a decision, of which retry_after is given jitter by who set it. */
static void
form(TupleDesc descriptor, Decision *d, Datum *values, bool *nulls)
{
	memset(nulls, true, DECISION_LIMITS);
#define SET(column, datum) (values[(column) - 1] = (datum), nulls[(column) - 1] = false)
	SET(DECISION_OK, BoolGetDatum(codes[d->code].ok));
	SET(DECISION_CODE, CStringGetTextDatum(codes[d->code].code));
	SET(DECISION_HTTP_STATUS, Int32GetDatum(codes[d->code].http_status));
	SET(DECISION_RETRYABLE, BoolGetDatum(codes[d->code].retryable));
	if (codes[d->code].retryable)
	{
		int64		after = Max(d->retry_after, 1);

		SET(DECISION_RETRY_AFTER, IntervalPGetDatum(clock_interval(after)));
		SET(DECISION_RETRY_AFTER_SECONDS, Int32GetDatum(Min((after - 1) / MICROS_PER_SECOND + 1, PG_INT32_MAX)));
	}
	if (codes[d->code].retry_key)
		SET(DECISION_RETRY_KEY, CStringGetTextDatum(codes[d->code].retry_key));
	if (d->has_job)
		SET(DECISION_JOB_ID, UUIDPGetDatum(&d->job_id));
	if (d->reserved != NO_AMOUNT)
		SET(DECISION_RESERVED, Int64GetDatum(d->reserved));
	SET(DECISION_MESSAGE, CStringGetTextDatum(codes[d->code].message));
	SET(DECISION_DETAILS, JsonbPGetDatum(details_jsonb(&d->details)));
	if (d->has_limits)
		SET(DECISION_LIMITS, limits_datum(TupleDescAttr(descriptor, DECISION_LIMITS - 1)->atttypid, &d->standing));
#undef SET
}

/* A decision as the result of the calling function. */
Datum
decision_datum(FunctionCallInfo fcinfo, Decision *d)
{
	TupleDesc	descriptor = lookup_rowtype_tupdesc(get_func_rettype(fcinfo->flinfo->fn_oid), -1);
	Datum		values[DECISION_LIMITS];
	bool		nulls[DECISION_LIMITS];
	Datum		result;

	form(descriptor, d, values, nulls);
	result = HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls));
	ReleaseTupleDesc(descriptor);
	return result;
}

/* Adds a decision to the set that the calling function returns. */
void
decision_put(FunctionCallInfo fcinfo, Decision *d)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[DECISION_LIMITS];
	bool		nulls[DECISION_LIMITS];

	form(result->setDesc, d, values, nulls);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* The rows that decision_code starts with. */
Datum
admission_decision_codes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < CODE_COUNT; i++)
	{
		Datum		values[7];
		bool		nulls[7] = {false};

		values[0] = CStringGetTextDatum(codes[i].code);
		values[1] = BoolGetDatum(codes[i].ok);
		values[2] = Int32GetDatum(codes[i].http_status);
		values[3] = BoolGetDatum(codes[i].retryable);
		nulls[4] = codes[i].retry_key == NULL;
		values[4] = nulls[4] ? (Datum) 0 : CStringGetTextDatum(codes[i].retry_key);
		values[5] = CStringGetTextDatum(codes[i].message);
		values[6] = CStringGetTextDatum(codes[i].client);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
