/*
 * provider.c
 *	  Which job a provider's own id names: each id of a provider names one.
 */
#include "admission.h"

#include "utils/builtins.h"

#include "config.h"
#include "provider.h"
#include "query.h"

/* Binds a provider's id to a job; false if it names another one.  Waits for an open transaction that binds the same. */
bool
provider_bind(Store *s, const Job *job, const char *provider_job_id)
{
	Model		model;
	Datum		values[PROVIDER_JOB_JOB_ID];
	bool		nulls[PROVIDER_JOB_JOB_ID] = {false};
	TupleTableSlot *row;

	if (!model_read(s, job->model_id, &model))
		elog(ERROR, "model %d has no row", job->model_id);
	values[PROVIDER_JOB_PROVIDER_JOB_ID - 1] = CStringGetTextDatum(provider_job_id);
	values[PROVIDER_JOB_PROVIDER - 1] = CStringGetTextDatum(model.provider);
	values[PROVIDER_JOB_JOB_ID - 1] = UUIDPGetDatum(&job->id);
	if (!query_inserts(QUERY_ADD_PROVIDER_JOB, values, nulls))
	{
		Bound		key[] = {
			EQUAL(1, values[PROVIDER_JOB_PROVIDER_JOB_ID - 1]), EQUAL(2, values[PROVIDER_JOB_PROVIDER - 1])
		};

		store_look_again(s);
		row = store_first(s, I_PROVIDER_JOB, ForwardScanDirection, 2, key);
		return row && memcmp(DatumGetUUIDP(COLUMN(row, PROVIDER_JOB_JOB_ID)), &job->id, UUID_LEN) == 0;
	}
	store_look_again(s);
	return true;
}

/* The job that a provider's id names; false if none does, or several providers' do. */
bool
provider_find(Store *s, const char *provider_job_id, Job *job)
{
	Bound		key[] = {EQUAL(1, CStringGetTextDatum(provider_job_id))};
	TupleTableSlot *row = store_first(s, I_PROVIDER_JOB, ForwardScanDirection, 1, key);
	pg_uuid_t	id;

	if (row == NULL)
		return false;
	id = *DatumGetUUIDP(COLUMN(row, PROVIDER_JOB_JOB_ID));
	return store_next(s, I_PROVIDER_JOB) == NULL && job_read(s, &id, job);
}
