/*
 * evidence.c
 *	  Reports that changed nothing or came late: kept, for reconciliation.
 */
#include "admission.h"

#include "catalog/namespace.h"
#include "commands/sequence.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "evidence.h"

static void
set_text(Datum *values, bool *nulls, int column, const char *text)
{
	nulls[column - 1] = text == NULL;
	values[column - 1] = text ? CStringGetTextDatum(text) : (Datum) 0;
}

void
evidence_keep(Store *s, const Job *job, TimestampTz at, Code code, const Report *report)
{
	Datum		values[EVIDENCE_RESULT];
	bool		nulls[EVIDENCE_RESULT] = {false};
	Oid			numbers = get_relname_relid("evidence_evidence_no_seq", get_namespace_oid(ADMISSION_SCHEMA, false));

	values[EVIDENCE_NO - 1] = Int64GetDatum(nextval_internal(numbers, false));
	values[EVIDENCE_AT - 1] = TimestampTzGetDatum(at);
	values[EVIDENCE_TENANT_ID - 1] = Int32GetDatum(job->tenant_id);
	values[EVIDENCE_JOB_ID - 1] = UUIDPGetDatum(&job->id);
	set_text(values, nulls, EVIDENCE_CODE, code_name(code));
	values[EVIDENCE_ATTEMPT - 1] = Int32GetDatum(report->attempt);
	nulls[EVIDENCE_ATTEMPT - 1] = report->attempt == NO_ATTEMPT;
	set_text(values, nulls, EVIDENCE_OUTCOME, report->outcome);
	values[EVIDENCE_ACTUAL - 1] = Int64GetDatum(report->actual);
	nulls[EVIDENCE_ACTUAL - 1] = report->actual == NO_AMOUNT;
	set_text(values, nulls, EVIDENCE_SETTLEMENT_KEY, report->settlement_key);
	set_text(values, nulls, EVIDENCE_PROVIDER_JOB_ID, report->provider_job_id);
	values[EVIDENCE_RESULT - 1] = JsonbPGetDatum(report->result);
	nulls[EVIDENCE_RESULT - 1] = report->result == NULL;
	store_insert(s, T_EVIDENCE, values, nulls);
}
