/*
 * billing.c
 *	  Money in and back: create_tenant, top_up, grant_credit, refund,
 *	  reverse_top_up, adjust.
 *
 * Under lock B of the tenant; nothing here waits for an admission or for
 * dispatch.  Each entry is idempotent by its reference, and references are one
 * namespace over tenants and kinds, kept by a unique index: two sessions with
 * one reference meet there.  A top-up or its reversal changes the tier, and
 * may make room: it puts the tenant on the ring unconditionally.
 */
#include "admission.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "amount.h"
#include "args.h"
#include "clock.h"
#include "job.h"
#include "locks.h"
#include "query.h"
#include "ring.h"

PG_FUNCTION_INFO_V1(admission_create_tenant);
PG_FUNCTION_INFO_V1(admission_top_up);
PG_FUNCTION_INFO_V1(admission_grant_credit);
PG_FUNCTION_INFO_V1(admission_refund);
PG_FUNCTION_INFO_V1(admission_reverse_top_up);
PG_FUNCTION_INFO_V1(admission_adjust);

#define REFERENCE_MAX_LENGTH	255

/* one entry of the ledger, as it was asked for */
typedef struct Entry
{
	const char *kind;
	int64		amount;			/* signed: what it adds to the balance */
	const char *reference;
	const char *source;
	const pg_uuid_t *job_id;
	const char *reverses;
	const char *reason;
} Entry;

typedef struct Ledger
{
	Store	   *s;
	Tenant		tenant;
	TimestampTz now;
	Billing		totals;
} Ledger;

/* ---- the ledger ---- */

/* Waits for lock B, then looks. */
static void
open_ledger(Ledger *ledger, Store *s, int32 tenant_id)
{
	ledger->s = s;
	lock_wait(LOCK_BILLING, tenant_id);
	store_look_again(s);
	if (!tenant_read(s, tenant_id, &ledger->tenant))
		elog(ERROR, "tenant %d is gone", tenant_id);
	ledger->now = clock_now();
	billing_newest(s, tenant_id, &ledger->totals);
}

static bool
same_text(TupleTableSlot *row, int column, const char *value)
{
	if (COLUMN_NULL(row, column) || value == NULL)
		return COLUMN_NULL(row, column) && value == NULL;
	return strcmp(TextDatumGetCString(COLUMN(row, column)), value) == 0;
}

static bool
same_entry(TupleTableSlot *row, int32 tenant_id, const Entry *e)
{
	bool		jobless = COLUMN_NULL(row, BILLING_JOB_ID);

	return DatumGetInt32(COLUMN(row, BILLING_TENANT_ID)) == tenant_id &&
		DatumGetInt64(COLUMN(row, BILLING_AMOUNT)) == e->amount &&
		same_text(row, BILLING_KIND, e->kind) &&
		same_text(row, BILLING_SOURCE, e->source) &&
		same_text(row, BILLING_REVERSES, e->reverses) &&
		jobless == (e->job_id == NULL) &&
		(jobless || memcmp(DatumGetUUIDP(COLUMN(row, BILLING_JOB_ID)), e->job_id, UUID_LEN) == 0);
}

static TupleTableSlot *
entry_of_reference(Store *s, const char *reference)
{
	Bound		key[] = {EQUAL(1, CStringGetTextDatum(reference))};

	return store_first(s, I_BILLING_REFERENCE, ForwardScanDirection, 1, key);
}

static void
tell(Ledger *ledger, const Entry *e, Code code, Decision *d)
{
	decide(d, code);
	details_text(&d->details, "reference", e->reference);
	if (code == CODE_REFERENCE_CONFLICT)
		return;
	store_look_again(ledger->s);
	d->has_limits = true;
	d->standing.tenant = ledger->tenant;
	standing_refresh(ledger->s, &d->standing);
	details_int(&d->details, "amount_micro", e->amount);
	details_int(&d->details, "balance_micro", standing_capacity(&d->standing).balance);
	details_int(&d->details, "available_micro", standing_capacity(&d->standing).available);
}

/* Whether the reference has been used; if so, that is the decision. */
static bool
is_repeat(Ledger *ledger, const Entry *e, Decision *d)
{
	TupleTableSlot *row = entry_of_reference(ledger->s, e->reference);

	if (row == NULL)
		return false;
	tell(ledger, e, same_entry(row, ledger->tenant.id, e) ? CODE_ALREADY_RECORDED : CODE_REFERENCE_CONFLICT, d);
	return true;
}

/* Appends the entry; false, and a decision, if another session was quicker with its reference. */
static bool
append(Ledger *ledger, const Entry *e, Decision *d)
{
	Datum		values[BILLING_REASON];
	bool		nulls[BILLING_REASON] = {false};

	values[BILLING_TENANT_ID - 1] = Int32GetDatum(ledger->tenant.id);
	values[BILLING_NO - 1] = Int64GetDatum(ledger->totals.no + 1);
	values[BILLING_AT - 1] = TimestampTzGetDatum(ledger->now);
	values[BILLING_KIND - 1] = CStringGetTextDatum(e->kind);
	values[BILLING_AMOUNT - 1] = Int64GetDatum(e->amount);
	values[BILLING_CREDITED - 1] = Int64GetDatum(amount_add(ledger->totals.credited, e->amount));
	values[BILLING_REFERENCE - 1] = CStringGetTextDatum(e->reference);
#define SET_TEXT(column, text) \
	(nulls[(column) - 1] = (text) == NULL, values[(column) - 1] = (text) ? CStringGetTextDatum(text) : (Datum) 0)
	SET_TEXT(BILLING_SOURCE, e->source);
	SET_TEXT(BILLING_REVERSES, e->reverses);
	SET_TEXT(BILLING_REASON, e->reason);
#undef SET_TEXT
	nulls[BILLING_JOB_ID - 1] = e->job_id == NULL;
	values[BILLING_JOB_ID - 1] = e->job_id ? UUIDPGetDatum(e->job_id) : (Datum) 0;
	if (query_inserts(QUERY_ADD_BILLING, values, nulls))
	{
		ledger->totals.no++;
		return true;
	}
	store_look_again(ledger->s);
	if (!is_repeat(ledger, e, d))
		elog(ERROR, "the entry of reference \"%s\" vanished", e->reference);
	return false;
}

/* ---- arguments ---- */

/* Whether an entry can be made at all; amounts are positive but for adjustments. */
static bool
well_formed(const Entry *e, bool has_amount, bool any_sign, Decision *d)
{
	if (!text_fits(e->reference, REFERENCE_MAX_LENGTH))
		decide_invalid(d, "reference", "1 to 255 bytes");
	else if (!has_amount || (any_sign ? e->amount == 0 : e->amount <= 0))
		decide_invalid(d, "amount_micro", any_sign ? "a number other than 0" : "a number above 0");
	else if (e->reason && strlen(e->reason) > 4000)
		decide_invalid(d, "reason", "at most 4000 bytes");
	else
		return true;
	return false;
}

static int64
amount_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? 0 : PG_GETARG_INT64(n);
}

/* ---- top-ups and grants ---- */

static void
count_top_up(Ledger *ledger, int64 amount)
{
	Datum		values[TOP_UP_REVERSED];
	bool		nulls[TOP_UP_REVERSED] = {false};

	values[TOP_UP_TENANT_ID - 1] = Int32GetDatum(ledger->tenant.id);
	values[TOP_UP_BILLING_NO - 1] = Int64GetDatum(ledger->totals.no);
	values[TOP_UP_AT - 1] = TimestampTzGetDatum(ledger->now);
	values[TOP_UP_AMOUNT - 1] = Int64GetDatum(amount);
	values[TOP_UP_REVERSED - 1] = Int64GetDatum(0);
	store_insert(ledger->s, T_TOP_UP, values, nulls);
}

/* An entry that concerns no other: top-up, grant, adjustment. */
static Datum
enter(FunctionCallInfo fcinfo, const Entry *e, bool any_sign)
{
	Store	   *s = store_open(STORE_LATEST);
	Tenant		tenant;
	Ledger		ledger;
	Decision	d;

	if (well_formed(e, !PG_ARGISNULL(1), any_sign, &d) && tenant_of_call(s, arg_text(fcinfo, 0), &tenant, &d))
	{
		open_ledger(&ledger, s, tenant.id);
		if (!is_repeat(&ledger, e, &d) && append(&ledger, e, &d))
		{
			if (e->source)
			{
				count_top_up(&ledger, e->amount);
				ring_add(s, tenant.id);
			}
			tell(&ledger, e, CODE_RECORDED, &d);
		}
	}
	store_close(s);
	return decision_datum(fcinfo, &d);
}

static Datum
refuse_argument(FunctionCallInfo fcinfo, const char *field, const char *expected)
{
	Decision	d;

	decide_invalid(&d, field, expected);
	return decision_datum(fcinfo, &d);
}

static bool
is_one_of(const char *text, const char *a, const char *b)
{
	return text && (strcmp(text, a) == 0 || strcmp(text, b) == 0);
}

/* top_up(): see its COMMENT.  Lock B of the tenant. */
Datum
admission_top_up(PG_FUNCTION_ARGS)
{
	Entry		e = {
		.kind = "top_up",
		.amount = amount_argument(fcinfo, 1)
	};

	PreventCommandIfReadOnly("admission.top_up()");
	e.source = arg_text(fcinfo, 2);
	e.reference = arg_text(fcinfo, 3);
	if (!is_one_of(e.source, "manual", "auto"))
		return refuse_argument(fcinfo, "source", "manual or auto");
	return enter(fcinfo, &e, false);
}

/* grant_credit(): see its COMMENT.  Lock B of the tenant. */
Datum
admission_grant_credit(PG_FUNCTION_ARGS)
{
	Entry		e = {.amount = amount_argument(fcinfo, 1)};

	PreventCommandIfReadOnly("admission.grant_credit()");
	e.kind = arg_text(fcinfo, 2);
	e.reference = arg_text(fcinfo, 3);
	if (!is_one_of(e.kind, "plan", "grant"))
		return refuse_argument(fcinfo, "kind", "plan or grant");
	return enter(fcinfo, &e, false);
}

/* adjust(): see its COMMENT.  Lock B of the tenant. */
Datum
admission_adjust(PG_FUNCTION_ARGS)
{
	Entry		e = {
		.kind = "adjustment",
		.amount = amount_argument(fcinfo, 1)
	};

	PreventCommandIfReadOnly("admission.adjust()");
	e.reference = arg_text(fcinfo, 2);
	e.reason = arg_text(fcinfo, 3);
	return enter(fcinfo, &e, true);
}

/* ---- refunds and reversals ---- */

/* What has been given back for a job so far. */
static int64
refunded(Store *s, const pg_uuid_t *job_id)
{
	Bound		key[] = {EQUAL(1, UUIDPGetDatum(job_id))};
	int64		sum = 0;
	TupleTableSlot *row;

	store_seek(s, I_BILLING_JOB, ForwardScanDirection, 1, key);
	while ((row = store_next(s, I_BILLING_JOB)) != NULL)
		sum = amount_add(sum, DatumGetInt64(COLUMN(row, BILLING_AMOUNT)));
	return sum;
}

static void
refund_job(Store *s, const Job *job, Entry *e, Decision *d)
{
	Ledger		ledger;
	JobState	state;
	int64		captured,
				left;

	open_ledger(&ledger, s, job->tenant_id);
	if (is_repeat(&ledger, e, d))
		return;
	job_find(s, job, &state);
	captured = state.place == PLACE_ENDED ? state.captured + state.late_micro : 0;
	left = captured - refunded(s, e->job_id);
	if (e->amount > left)
	{
		decide_invalid(d, "amount_micro", "at most what was captured for the job and not yet refunded");
		details_int(&d->details, "captured_micro", captured);
		details_int(&d->details, "refundable_micro", left);
		return;
	}
	if (append(&ledger, e, d))
		tell(&ledger, e, CODE_RECORDED, d);
}

/* refund(): see its COMMENT.  Lock B of the tenant. */
Datum
admission_refund(PG_FUNCTION_ARGS)
{
	Entry		e = {
		.kind = "refund",
		.amount = amount_argument(fcinfo, 1)
	};
	Store	   *s;
	Job			job;
	Decision	d;

	PreventCommandIfReadOnly("admission.refund()");
	if (PG_ARGISNULL(0))
		return refuse_argument(fcinfo, "job_id", "a job's id");
	e.job_id = PG_GETARG_UUID_P(0);
	e.reference = arg_text(fcinfo, 2);
	e.reason = arg_text(fcinfo, 3);
	s = store_open(STORE_LATEST);
	if (well_formed(&e, !PG_ARGISNULL(1), false, &d))
	{
		if (job_read(s, e.job_id, &job))
			refund_job(s, &job, &e, &d);
		else
			decide(&d, CODE_NOT_FOUND);
	}
	store_close(s);
	return decision_datum(fcinfo, &d);
}

/* The counted top-up of a ledger number, locked; what of it is not reversed yet in left. */
static TupleTableSlot *
lock_top_up(Store *s, int32 tenant_id, int64 billing_no, int64 *left)
{
	Bound		key[] = {EQUAL(1, Int32GetDatum(tenant_id)), EQUAL(2, Int64GetDatum(billing_no))};
	TupleTableSlot *row = store_first(s, I_TOP_UP, ForwardScanDirection, 2, key);

	if (row == NULL || store_lock(s, T_TOP_UP, &row->tts_tid, true, &row) != ROW_LOCKED)
		elog(ERROR, "top-up " INT64_FORMAT " of tenant %d is not counted", billing_no, tenant_id);
	*left = DatumGetInt64(COLUMN(row, TOP_UP_AMOUNT)) - DatumGetInt64(COLUMN(row, TOP_UP_REVERSED));
	return row;
}

static void
reverse(Store *s, int32 tenant_id, int64 top_up_no, Entry *e, Decision *d)
{
	Ledger		ledger;
	TupleTableSlot *row;
	int64		left,
				amount = -e->amount;
	Datum		values[TOP_UP_REVERSED];
	bool		nulls[TOP_UP_REVERSED] = {false};
	ItemPointerData tid;

	open_ledger(&ledger, s, tenant_id);
	if (is_repeat(&ledger, e, d))
		return;
	row = lock_top_up(s, tenant_id, top_up_no, &left);
	if (amount > left)
	{
		decide_invalid(d, "amount_micro", "at most what of the top-up is not reversed yet");
		details_int(&d->details, "reversible_micro", left);
		return;
	}
	tid = row->tts_tid;
	memcpy(values, row->tts_values, sizeof(values));
	values[TOP_UP_REVERSED - 1] = Int64GetDatum(DatumGetInt64(COLUMN(row, TOP_UP_REVERSED)) + amount);
	if (!append(&ledger, e, d))
		return;
	store_update(s, T_TOP_UP, &tid, values, nulls);
	tell(&ledger, e, CODE_RECORDED, d);
}

/* reverse_top_up(): see its COMMENT.  Lock B of the tenant. */
Datum
admission_reverse_top_up(PG_FUNCTION_ARGS)
{
	int64		amount = amount_argument(fcinfo, 1);
	Entry		e = {
		.kind = "reversal",
		.amount = amount
	};
	Store	   *s;
	TupleTableSlot *row;
	Decision	d;

	PreventCommandIfReadOnly("admission.reverse_top_up()");
	e.reverses = arg_text(fcinfo, 0);
	e.reference = arg_text(fcinfo, 2);
	e.reason = arg_text(fcinfo, 3);
	if (!text_fits(e.reverses, REFERENCE_MAX_LENGTH))
		return refuse_argument(fcinfo, "top_up_reference", "1 to 255 bytes");
	s = store_open(STORE_LATEST);
	if (well_formed(&e, !PG_ARGISNULL(1), false, &d))
	{
		row = entry_of_reference(s, e.reverses);
		e.amount = -amount;
		if (row && same_text(row, BILLING_KIND, "top_up"))
			reverse(s, DatumGetInt32(COLUMN(row, BILLING_TENANT_ID)), DatumGetInt64(COLUMN(row, BILLING_NO)), &e, &d);
		else
			decide(&d, CODE_NOT_FOUND);
	}
	store_close(s);
	return decision_datum(fcinfo, &d);
}

/* ---- tenants ---- */

/* create_tenant(): see its COMMENT. */
Datum
admission_create_tenant(PG_FUNCTION_ARGS)
{
	const char *name = arg_text(fcinfo, 0);
	Datum		values[2];
	bool		nulls[2] = {false, PG_ARGISNULL(1)};
	bool		inserted;
	Decision	d;
	Store	   *s;

	PreventCommandIfReadOnly("admission.create_tenant()");
	if (!text_fits(name, 255))
		return refuse_argument(fcinfo, "tenant", "1 to 255 bytes");
	values[0] = PG_GETARG_DATUM(0);
	values[1] = nulls[1] ? (Datum) 0 : PG_GETARG_DATUM(1);
	inserted = query_inserts(QUERY_ADD_TENANT, values, nulls);
	s = store_open(STORE_LATEST);
	decide(&d, inserted ? CODE_RECORDED : CODE_ALREADY_RECORDED);
	d.has_limits = standing_of_name(s, name, &d.standing);
	store_close(s);
	return decision_datum(fcinfo, &d);
}
