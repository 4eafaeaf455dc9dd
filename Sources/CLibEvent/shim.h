#ifndef IEUM_CLIBEVENT_SHIM_H
#define IEUM_CLIBEVENT_SHIM_H

/* Before libevent's headers, which define _GNU_SOURCE: fd_set must look as in Swift's Glibc module. */
#include <sys/eventfd.h> /* not part of Swift's Glibc module */
#include <sys/select.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <event2/util.h>

/* Hidden behind _GNU_SOURCE, which Swift's importer does not define. */
int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags);

#endif
