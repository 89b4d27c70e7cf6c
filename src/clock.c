/*
 * clock.c
 *	  The time decisions are made by, and exact durations.
 *
 * Time is the server's clock at the moment of the call, not the start of the
 * transaction.  Callers read it after the lock their decision needs.  The
 * superuser-only setting admission.test_clock freezes it.
 */
#include "admission.h"

#include "common/int.h"
#include "utils/builtins.h"
#include "utils/datetime.h"

#include "clock.h"

PG_FUNCTION_INFO_V1(admission_clock);

/* what a check hook passes on belongs to the settings' own memory from 16 on */
#if PG_VERSION_NUM >= 160000
#define guc_alloc(size)	guc_malloc(LOG, size)
#define guc_release(p)	guc_free(p)
#else
#define guc_alloc(size)	malloc(size)
#define guc_release(p)	free(p)
#endif

char	   *clock_test_setting = NULL;
static TimestampTz frozen = NO_TIME;

/* The time of an admission.test_clock setting; false when it is none. */
static bool
parse_timestamp(const char *text, TimestampTz *result)
{
	char		work[MAXDATELEN + MAXDATEFIELDS];
	char	   *field[MAXDATEFIELDS];
	int			ftype[MAXDATEFIELDS];
	int			nf,
				dtype,
				tz = 0;
	struct pg_tm tm;
	fsec_t		fsec;
#if PG_VERSION_NUM >= 160000
	DateTimeErrorExtra extra;
#endif

	if (ParseDateTime(text, work, sizeof(work), field, ftype, MAXDATEFIELDS, &nf) != 0)
		return false;
#if PG_VERSION_NUM >= 160000
	if (DecodeDateTime(field, ftype, nf, &dtype, &tm, &fsec, &tz, &extra) != 0)
		return false;
#else
	if (DecodeDateTime(field, ftype, nf, &dtype, &tm, &fsec, &tz) != 0)
		return false;
#endif
	return dtype == DTK_DATE && tm2timestamp(&tm, fsec, &tz, result) == 0;
}

bool
clock_check_setting(char **newval, void **extra, GucSource source)
{
	TimestampTz *parsed = guc_alloc(sizeof(TimestampTz));

	if (parsed == NULL)
		return false;
	*parsed = NO_TIME;
	if (**newval != '\0' && !parse_timestamp(*newval, parsed))
	{
		guc_release(parsed);
		GUC_check_errdetail("It must be a timestamp with time zone, or empty.");
		return false;
	}
	*extra = parsed;
	return true;
}

void
clock_assign_setting(const char *newval, void *extra)
{
	frozen = extra ? *(TimestampTz *) extra : NO_TIME;
}

/* The server's clock, or the frozen one. */
TimestampTz
clock_now(void)
{
	return HAS_TIME(frozen) ? frozen : GetCurrentTimestamp();
}

Datum
admission_clock(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(clock_now());
}

/* at + micros; infinity stays, and what leaves the range of timestamps is an error. */
TimestampTz
clock_add(TimestampTz at, int64 micros)
{
	TimestampTz sum;

	if (TIMESTAMP_NOT_FINITE(at))
		return at;
	if (pg_add_s64_overflow(at, micros, &sum) || !IS_VALID_TIMESTAMP(sum))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range"),
				 errhint("Use a shorter duration.")));
	return sum;
}

/*
 * The exact length of an interval: a day is 24 hours, a month 30 days.  Not
 * valid: what does not fit in a thousand years.
 */
int64
clock_span_micros(const Interval *span, bool *valid)
{
	int64		days = (int64) span->month * DAYS_PER_MONTH + span->day;
	int64		micros;

	*valid = days > -INT64CONST(366000) && days < INT64CONST(366000) &&
		!pg_add_s64_overflow(days * USECS_PER_DAY, span->time, &micros) &&
		micros < INT64CONST(366000) * USECS_PER_DAY;
	return *valid ? micros : 0;
}

/* An interval of so many microseconds. */
Interval *
clock_interval(int64 micros)
{
	Interval   *span = palloc0(sizeof(Interval));

	span->time = micros;
	return span;
}
