/*
 * query.c
 *	  The only user of SPI: inserts that must yield to a row somebody else made,
 *	  which direct writes cannot do.
 *
 * A statement is prepared at its first use and kept for the session; nothing
 * in it depends on a search_path.  ON CONFLICT waits for an open transaction
 * that inserted the same key, and raises 40001 where the conflicting row is
 * newer than the caller's snapshot.
 */
#include "admission.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"

#include "query.h"

#define MAX_ARGUMENTS 11

static const struct
{
	const char *text;
	int			arguments;
	Oid			types[MAX_ARGUMENTS];
}			queries[] = {

	[QUERY_ADD_TENANT] = {
		"INSERT INTO admission.tenant (tenant, plan_id) VALUES ($1, $2) ON CONFLICT (tenant) DO NOTHING",
		2, {TEXTOID, TEXTOID}
	},
	[QUERY_ADD_BILLING] = {
		"INSERT INTO admission.billing VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
		" ON CONFLICT (reference) DO NOTHING",
		11, {INT4OID, INT8OID, TIMESTAMPTZOID, TEXTOID, INT8OID, INT8OID, TEXTOID, TEXTOID, UUIDOID, TEXTOID, TEXTOID}
	},
	[QUERY_ADD_PROVIDER_JOB] = {
		"INSERT INTO admission.provider_job VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		3, {TEXTOID, TEXTOID, UUIDOID}
	},
};

static SPIPlanPtr plans[QUERY_COUNT];

/* Runs an insert; false if the row was there. */
bool
query_inserts(QueryId id, Datum *values, const bool *nulls)
{
	char		null_marks[MAX_ARGUMENTS];
	bool		inserted;
	int			result;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (plans[id] == NULL)
	{
		SPIPlanPtr	plan = SPI_prepare(queries[id].text, queries[id].arguments, (Oid *) queries[id].types);

		if (plan == NULL || SPI_keepplan(plan) != 0)
			elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
		plans[id] = plan;
	}
	for (int i = 0; i < queries[id].arguments; i++)
		null_marks[i] = nulls[i] ? 'n' : ' ';
	result = SPI_execute_plan(plans[id], values, null_marks, false, 0);
	if (result != SPI_OK_INSERT)
		elog(ERROR, "SPI_execute_plan failed: %s", SPI_result_code_string(result));
	inserted = SPI_processed > 0;
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	return inserted;
}
