/*
 * locks.c
 *	  The only user of the lock manager: classes, keys and modes of all
 *	  advisory locks.
 *
 * All are transaction locks: a savepoint's rollback, commit, PREPARE
 * TRANSACTION and the death of a backend treat them as any other.  A lock
 * taken twice is counted, so releasing what a rejected call took leaves a
 * lock held before untouched.
 */
#include "admission.h"

#include "miscadmin.h"
#include "storage/lock.h"

#include "locks.h"

static bool
take(LockClass class, uint32 key, LOCKMODE mode, bool dont_wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, key, 0, class);
	return LockAcquire(&tag, mode, false, dont_wait) != LOCKACQUIRE_NOT_AVAIL;
}

static void
give(LockClass class, uint32 key, LOCKMODE mode)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, key, 0, class);
	LockRelease(&tag, mode, false);
}

void
lock_wait(LockClass class, uint32 key)
{
	(void) take(class, key, ExclusiveLock, false);
}

bool
lock_try(LockClass class, uint32 key)
{
	return take(class, key, ExclusiveLock, true);
}

bool
lock_try_shared(LockClass class, uint32 key)
{
	return take(class, key, ShareLock, true);
}

void
lock_release(LockClass class, uint32 key)
{
	give(class, key, ExclusiveLock);
}

void
lock_release_shared(LockClass class, uint32 key)
{
	give(class, key, ShareLock);
}
