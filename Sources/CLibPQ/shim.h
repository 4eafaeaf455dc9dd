#ifndef IEUM_CLIBPQ_SHIM_H
#define IEUM_CLIBPQ_SHIM_H

#include <libpq-fe.h>
#include <postgres_ext.h>
#include <spawn.h>

/* glibc declares these for _GNU_SOURCE only, which Swift's Glibc module is built without. The private cluster's child
 * needs pipes that no other child inherits, a session of its own, and none of our descriptors. */
enum { IEUM_SPAWN_SETSID = 0x80 };
extern int pipe2(int descriptors[2], int flags);
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);

#endif
