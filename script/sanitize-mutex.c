// Tells ThreadSanitizer of the locks of Swift's Mutex that it cannot see.
//
// The quick path of a Mutex stands in the code that uses it, where the sanitizer looks. Where a lock is contended the standard
// library is called, which is built without the sanitizer: it then misses that one thread waited for the other.
// Preloaded by script/sanitize. A process without the sanitizer has neither of its functions, and nothing changes there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

void __tsan_acquire(void *) __attribute__((weak));
void __tsan_release(void *) __attribute__((weak));

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void ieum_lock_slowly(uint32_t thread, SELF) __asm__(LOCK);
SWIFT void ieum_unlock_slowly(SELF) __asm__(UNLOCK);

SWIFT void ieum_lock_slowly(uint32_t thread, SELF) {
    static SWIFT void (*original)(uint32_t, SELF);
    if (!original) original = (SWIFT void (*)(uint32_t, SELF))dlsym(RTLD_NEXT, LOCK);
    original(thread, self);
    if (__tsan_acquire) __tsan_acquire(self);
}

SWIFT void ieum_unlock_slowly(SELF) {
    static SWIFT void (*original)(SELF);
    if (!original) original = (SWIFT void (*)(SELF))dlsym(RTLD_NEXT, UNLOCK);
    if (__tsan_release) __tsan_release(self);
    original(self);
}
