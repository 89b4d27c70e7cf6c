/*
 * evidence.c
 *	  Reports that changed nothing or came late: kept, for reconciliation.
 */
#include "admission.h"

#include "evidence.h"

void
evidence_keep(Store *s, const Job *job, TimestampTz at, Code code, const Report *report)
{
	Datum		values[EVIDENCE_RESULT];
	bool		nulls[EVIDENCE_RESULT] = {false};

	values[EVIDENCE_NO - 1] = Int64GetDatum(store_number("evidence_evidence_no_seq"));
	values[EVIDENCE_AT - 1] = TimestampTzGetDatum(at);
	values[EVIDENCE_TENANT_ID - 1] = Int32GetDatum(job->tenant_id);
	values[EVIDENCE_JOB_ID - 1] = UUIDPGetDatum(&job->id);
	values[EVIDENCE_CODE - 1] = store_text(code_name(code), &nulls[EVIDENCE_CODE - 1]);
	values[EVIDENCE_ATTEMPT - 1] = Int32GetDatum(report->attempt);
	nulls[EVIDENCE_ATTEMPT - 1] = report->attempt == NO_ATTEMPT;
	values[EVIDENCE_OUTCOME - 1] = store_text(report->outcome, &nulls[EVIDENCE_OUTCOME - 1]);
	values[EVIDENCE_ACTUAL - 1] = Int64GetDatum(report->actual);
	nulls[EVIDENCE_ACTUAL - 1] = report->actual == NO_AMOUNT;
	values[EVIDENCE_SETTLEMENT_KEY - 1] = store_text(report->settlement_key, &nulls[EVIDENCE_SETTLEMENT_KEY - 1]);
	values[EVIDENCE_PROVIDER_JOB_ID - 1] = store_text(report->provider_job_id, &nulls[EVIDENCE_PROVIDER_JOB_ID - 1]);
	values[EVIDENCE_RESULT - 1] = JsonbPGetDatum(report->result);
	nulls[EVIDENCE_RESULT - 1] = report->result == NULL;
	store_insert(s, T_EVIDENCE, values, nulls);
}
