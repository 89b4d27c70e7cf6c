#ifndef PROVIDER_H
#define PROVIDER_H

#include "job.h"

extern bool provider_bind(Store *s, const Job *job, const char *provider_job_id);
extern bool provider_find(Store *s, const char *provider_job_id, Job *job);

#endif
