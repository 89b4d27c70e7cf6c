/*
 * codes.h
 *	  Every decision code, once: name, ok, HTTP status, retryable, key of a
 *	  retry, message, and what the client should do.  The table decision_code
 *	  is filled from here.
 */
#ifndef CODES_H
#define CODES_H

#define DECISION_CODES(X) \
	X(INVALID_REQUEST, "invalid_request", false, 400, false, "same", \
	  "an argument is malformed", "Correct the argument that details.field names.") \
	X(UNAUTHORIZED, "unauthorized", false, 401, false, NULL, \
	  "the role may not act for any tenant", "Connect with a role that may.") \
	X(UNKNOWN_TENANT, "unknown_tenant", false, 401, false, NULL, \
	  "no such tenant", "Check the tenant's name.") \
	X(TENANT_SUSPENDED, "tenant_suspended", false, 403, false, NULL, \
	  "the tenant is suspended", "Ask the operator.") \
	X(ALREADY_ACCEPTED, "already_accepted", true, 200, false, NULL, \
	  "this operation was accepted before", "Go on with the job it names.") \
	X(IDEMPOTENCY_CONFLICT, "idempotency_conflict", false, 409, false, "new", \
	  "the operation key was used for another request", "Use a new key for a new request.") \
	X(RATE_LIMITED, "rate_limited", false, 429, true, "same", \
	  "submissions come too fast", "Repeat after retry_after.") \
	X(MODEL_NOT_FOUND, "model_not_found", false, 404, false, NULL, \
	  "no such model for this tenant", "Choose another model.") \
	X(UNSUPPORTED_CONFIGURATION, "unsupported_configuration", false, 400, false, "same", \
	  "the model is not offered in this configuration", "Change resolution, length or the like.") \
	X(COST_TOO_HIGH, "cost_too_high", false, 402, false, "same", \
	  "the quote is above the caller's limit", "Raise max_cost_micro or ask for less.") \
	X(PROVIDER_CAPACITY_EXCEEDED, "provider_capacity_exceeded", false, 503, true, "same", \
	  "the model is paused", "Repeat after retry_after, or choose another model.") \
	X(CONCURRENCY_LIMIT_EXCEEDED, "concurrency_limit_exceeded", false, 402, true, "same", \
	  "a limit is full", "Repeat after retry_after.") \
	X(GLOBAL_CAPACITY, "global_capacity", false, 429, true, "same", \
	  "all outstanding slots are taken", "Repeat after retry_after.") \
	X(QUEUE_FULL, "queue_full", false, 429, true, "same", \
	  "the tenant has as many jobs as it may have", "Repeat after retry_after, or top up for a higher tier.") \
	X(QUEUE_TOO_LONG, "queue_too_long", false, 429, true, "same", \
	  "more jobs are ahead than the caller accepts", "Repeat after retry_after, or raise max_ahead.") \
	X(BUDGET_EXHAUSTED, "budget_exhausted", false, 402, false, "same", \
	  "a ceiling on money is reached", "Wait until details.resets_at or raise the budget.") \
	X(INSUFFICIENT_CREDITS, "insufficient_credits", false, 402, false, "new", \
	  "the balance does not cover the quote", "Top up.") \
	X(INSUFFICIENT_FUNDS, "insufficient_funds", false, 402, false, "new", \
	  "the balance does not cover the quote", "The same as insufficient_credits, for callers who speak only dollars.") \
	X(ACCEPTED, "accepted", true, 202, false, NULL, \
	  "the job was accepted", "Commit, then ask for its status.") \
	X(PREVIEW, "preview", true, 200, false, NULL, \
	  "the job would be accepted", "Call admit.") \
	X(CANCELED, "canceled", true, 200, false, NULL, \
	  "the job was canceled", "Nothing: its money is free again.") \
	X(ALREADY_CANCELED, "already_canceled", true, 200, false, NULL, \
	  "the job was canceled before", "Nothing.") \
	X(ALREADY_STARTED, "job_generation_already_started", false, 409, false, NULL, \
	  "the job has started or ended", "Wait for its end; what is at the provider ends by evidence only.") \
	X(NOT_FOUND, "not_found", false, 404, false, NULL, \
	  "no such job", "Check the id.") \
	X(SUBMISSION_STARTED, "submission_started", true, 200, false, NULL, \
	  "the submission has begun", "Commit, then call the provider.") \
	X(SUBMITTED, "submitted", true, 200, false, NULL, \
	  "the provider has the job", "Commit.") \
	X(UNKNOWN_RECORDED, "unknown_recorded", true, 200, false, NULL, \
	  "the outcome of the submission is unknown", "Look at the provider; settle when there is evidence.") \
	X(LEASE_EXTENDED, "lease_extended", true, 200, false, NULL, \
	  "the lease was extended", "Go on.") \
	X(REQUEUED, "requeued", true, 200, false, NULL, \
	  "the job is back in line", "Leave it.") \
	X(SETTLED, "settled", true, 200, false, NULL, \
	  "the job is settled", "Commit.") \
	X(ALREADY_SETTLED, "already_settled", true, 200, false, NULL, \
	  "the job was settled so before", "Nothing.") \
	X(LATE_COMPLETION, "late_completion", true, 200, false, NULL, \
	  "a success for a job that had ended by force was recorded", "Nothing.") \
	X(SETTLEMENT_CONFLICT, "settlement_conflict", false, 409, false, NULL, \
	  "the job was settled otherwise", "Nothing changes; the report is kept.") \
	X(STALE_CLAIM, "stale_claim", false, 409, false, NULL, \
	  "the attempt is not the current one", "Drop the job; what was reported is kept.") \
	X(RECORDED, "recorded", true, 200, false, NULL, \
	  "recorded", "Commit.") \
	X(ALREADY_RECORDED, "already_recorded", true, 200, false, NULL, \
	  "recorded before", "Nothing.") \
	X(REFERENCE_CONFLICT, "reference_conflict", false, 409, false, "new", \
	  "the reference was used for something else", "Use another reference for another entry.")

#endif
