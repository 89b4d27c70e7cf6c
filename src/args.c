/*
 * args.c
 *	  Arguments, from calls and from jsonb items: what a client can get wrong
 *	  becomes the decision invalid_request, whose message stands here once.
 */
#include "admission.h"

#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "args.h"
#include "clock.h"

/* The longest name of a tenant, model, worker and the like, in bytes. */
#define NAME_MAX_LENGTH 255

const char *
arg_text(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : TextDatumGetCString(PG_GETARG_DATUM(n));
}

Jsonb *
arg_jsonb(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : PG_GETARG_JSONB_P(n);
}

/* A duration; NO_TIME for null; false if it is not a positive one. */
bool
arg_span(FunctionCallInfo fcinfo, int n, int64 *micros)
{
	bool		valid = true;

	*micros = NO_TIME;
	if (!PG_ARGISNULL(n))
		*micros = clock_span_micros(PG_GETARG_INTERVAL_P(n), &valid);
	if (!valid)
		*micros = NO_TIME;
	return valid && (PG_ARGISNULL(n) || *micros > 0);
}

/* Whether a text has 1 to most bytes. */
bool
text_fits(const char *text, int most)
{
	return text && *text && strlen(text) <= most;
}

bool
is_object(const Jsonb *json)
{
	return json && JB_ROOT_IS_OBJECT(json);
}

/* A whole number between two bounds. */
bool
json_whole(const JsonbValue *value, int64 low, int64 high, int64 *number)
{
	Datum		n;

	if (value->type != jbvNumeric || numeric_is_nan(value->val.numeric) || numeric_is_inf(value->val.numeric))
		return false;
	n = NumericGetDatum(value->val.numeric);
	if (!DatumGetBool(DirectFunctionCall2(numeric_ge, n, NumericGetDatum(int64_to_numeric(low)))) ||
		!DatumGetBool(DirectFunctionCall2(numeric_le, n, NumericGetDatum(int64_to_numeric(high)))) ||
		!DatumGetBool(DirectFunctionCall2(numeric_eq, n, DirectFunctionCall2(numeric_trunc, n, Int32GetDatum(0)))))
		return false;
	*number = DatumGetInt64(DirectFunctionCall1(numeric_int8, n));
	return true;
}

bool
json_text(const JsonbValue *value, const char **text)
{
	if (value->type != jbvString)
		return false;
	*text = pnstrdup(value->val.string.val, value->val.string.len);
	return true;
}

/* A uuid in its usual form of 36 characters. */
bool
json_uuid(const JsonbValue *value, pg_uuid_t *uuid)
{
	const char *text;

	if (!json_text(value, &text) || strlen(text) != 36)
		return false;
	for (int i = 0; i < 36; i++)
	{
		bool		dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !isxdigit((unsigned char) text[i]))
			return false;
	}
	*uuid = *DatumGetUUIDP(DirectFunctionCall1(uuid_in, CStringGetDatum(text)));
	return true;
}

/*
 * Reads the fields of an item of a batch, each by the reader, which says what
 * it expects of one that is malformed; false, and a decision, at the first.
 */
bool
fields_from_json(Jsonb *item, FieldReader reader, void *into, Decision *d)
{
	JsonbIterator *iterator;
	JsonbValue	key,
				value;

	if (!is_object(item))
	{
		decide_invalid(d, "items", "an array of objects");
		return false;
	}
	iterator = JsonbIteratorInit(&item->root);
	(void) JsonbIteratorNext(&iterator, &key, true);
	while (JsonbIteratorNext(&iterator, &key, true) == WJB_KEY)
	{
		const char *name = pnstrdup(key.val.string.val, key.val.string.len);
		const char *expected;

		(void) JsonbIteratorNext(&iterator, &value, true);
		expected = reader(name, &value, into);
		if (expected)
		{
			decide_invalid(d, name, expected);
			return false;
		}
	}
	return true;
}

/* A positive duration written as an interval. */
static bool
json_span(const JsonbValue *value, int64 *micros)
{
	const char *text;
	char		work[MAXDATELEN + MAXDATEFIELDS];
	char	   *field[MAXDATEFIELDS];
	int			ftype[MAXDATEFIELDS];
	int			nf,
				dtype;
	struct pg_itm_in parts;
	Interval	span;
	bool		valid;

	if (!json_text(value, &text) ||
		ParseDateTime(text, work, sizeof(work), field, ftype, MAXDATEFIELDS, &nf) != 0 ||
		DecodeInterval(field, ftype, nf, INTERVAL_FULL_RANGE, &dtype, &parts) != 0 ||
		dtype != DTK_DELTA || itmin2interval(&parts, &span) != 0)
		return false;
	*micros = clock_span_micros(&span, &valid);
	return valid && *micros > 0;
}

/* What holds however the request came. */
static bool
well_formed(const Request *r, Decision *d)
{
	if (!text_fits(r->model, NAME_MAX_LENGTH))
		decide_invalid(d, "model", "1 to 255 bytes");
	else if (r->priority < PG_INT16_MIN || r->priority > PG_INT16_MAX)
		decide_invalid(d, "priority", "a number from -32768 to 32767");
	else if (!is_object(r->request))
		decide_invalid(d, "request", "an object");
	else if (!is_object(r->context))
		decide_invalid(d, "context", "an object");
	else
		return true;
	return false;
}

/* The arguments of admit and preview; false, and a decision, if one is malformed. */
bool
request_from_call(FunctionCallInfo fcinfo, Request *r, Decision *d)
{
	memset(r, 0, sizeof(Request));
	r->operation_key = arg_text(fcinfo, 1);
	r->model = arg_text(fcinfo, 2);
	r->request = arg_jsonb(fcinfo, 3);
	r->context = arg_jsonb(fcinfo, 4);
	r->priority = PG_ARGISNULL(5) ? 0 : PG_GETARG_INT32(5);
	r->max_ahead = PG_ARGISNULL(7) ? -1 : PG_GETARG_INT32(7);
	r->max_cost = PG_ARGISNULL(8) ? NO_AMOUNT : PG_GETARG_INT64(8);
	if (r->context == NULL)
		r->context = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));
	if (!arg_span(fcinfo, 6, &r->start_within))
		decide_invalid(d, "start_within", "a duration above zero");
	else if (!PG_ARGISNULL(7) && r->max_ahead < 0)
		decide_invalid(d, "max_ahead", "a number from 0");
	else if (!PG_ARGISNULL(8) && r->max_cost < 0)
		decide_invalid(d, "max_cost_micro", "a number from 0");
	else
		return well_formed(r, d);
	return false;
}

/* One field of an item of admit_many; what is expected of it if it is malformed, else NULL. */
static const char *
request_field(const char *name, const JsonbValue *value, void *into)
{
	Request    *r = into;
	const char *text;
	int64		number;

	if (value->type == jbvNull && strcmp(name, "request") != 0)
		return NULL;
	if (strcmp(name, "operation_key") == 0)
		return json_text(value, &r->operation_key) ? NULL : "a text";
	if (strcmp(name, "model") == 0)
		return json_text(value, &r->model) ? NULL : "a text";
	if (strcmp(name, "request") == 0 || strcmp(name, "context") == 0)
	{
		Jsonb	  **target = *name == 'r' ? &r->request : &r->context;

		if (value->type != jbvBinary)
			return "an object";
		*target = JsonbValueToJsonb(unconstify(JsonbValue *, value));
		return NULL;
	}
	if (strcmp(name, "priority") == 0)
	{
		if (!json_whole(value, PG_INT16_MIN, PG_INT16_MAX, &number))
			return "a number from -32768 to 32767";
		r->priority = (int32) number;
		return NULL;
	}
	if (strcmp(name, "start_within") == 0)
		return json_span(value, &r->start_within) ? NULL : "a duration above zero";
	if (strcmp(name, "max_ahead") == 0)
		return json_whole(value, 0, PG_INT32_MAX, &r->max_ahead) ? NULL : "a number from 0";
	if (strcmp(name, "max_cost_micro") == 0)
		return json_whole(value, 0, PG_INT64_MAX, &r->max_cost) ? NULL : "a number from 0";
	if (strcmp(name, "tenant") == 0)
		return json_text(value, &text) && strcmp(text, r->tenant) == 0 ? NULL : "the tenant of the call";
	return "an argument name of admit";
}

/* The arguments of one item of admit_many. */
bool
request_from_json(Jsonb *item, const char *tenant, Request *r, Decision *d)
{
	memset(r, 0, sizeof(Request));
	r->start_within = NO_TIME;
	r->max_ahead = -1;
	r->max_cost = NO_AMOUNT;
	r->context = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));
	r->tenant = tenant;
	if (!fields_from_json(item, request_field, r, d))
		return false;
	return well_formed(r, d);
}

/* Whether the operation key has the length that the policy allows. */
bool
request_key_fits(const Request *r, const Policy *policy, bool key_needed, Decision *d)
{
	if (r->operation_key == NULL ? !key_needed : text_fits(r->operation_key, policy->key_max_length))
		return true;
	decide_invalid(d, "operation_key", psprintf("1 to %d bytes", policy->key_max_length));
	return false;
}

/* The tenant of a call; false, and a decision, if there is none. */
bool
tenant_of_call(Store *s, const char *name, Tenant *tenant, Decision *d)
{
	if (!text_fits(name, NAME_MAX_LENGTH))
		decide_invalid(d, "tenant", "1 to 255 bytes");
	else if (!tenant_find(s, name, tenant))
		decide(d, CODE_UNKNOWN_TENANT);
	else
		return true;
	return false;
}
