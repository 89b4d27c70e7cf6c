#ifndef LOCKS_H
#define LOCKS_H

/*
 * The advisory locks of the extension, in the order in which one transaction
 * takes them; within a class by ascending key.  The numbers are the fourth
 * field of the lock tag (objsubid in pg_locks): above 2, so they cannot
 * collide with the SQL-level advisory lock functions.
 */
typedef enum LockClass
{
	LOCK_INTAKE = 11,			/* I: one admission of a tenant at a time */
	LOCK_DISPATCH = 12,			/* D: one hand on a tenant's accepted jobs */
	LOCK_BILLING = 13,			/* B: one entry of a tenant's ledger at a time */
	LOCK_PRESENCE = 14,			/* P: only tried; shared by admissions, exclusive for who takes the tenant
								 * off the ring */
	LOCK_POOL = 15				/* a pool's capacity: shared, only tried, by who adds a stripe below zero;
								 * exclusive by who changes it */
} LockClass;

extern void lock_wait(LockClass class, uint32 key);
extern bool lock_try(LockClass class, uint32 key);
extern bool lock_try_shared(LockClass class, uint32 key);
extern void lock_release(LockClass class, uint32 key);
extern void lock_release_shared(LockClass class, uint32 key);

#endif
