/* The calls of PBG, program-behaviour-guided scheduling.
 *
 *   sys_measure_start();  ... the program runs ...   sys_measure_end();
 *   sys_start_pbg();      ... the program runs again, in the planned order ...
 *
 * Each returns a value >= 0, or a negative errno and changes nothing.
 * SPDX-License-Identifier: GPL-3.0-or-later OR Apache-2.0 OR MulanPSL-2.0
 */
#ifndef AXSCHED_EXT_H
#define AXSCHED_EXT_H

#ifdef __cplusplus
extern "C" {
#endif

/* What a negative return value says. */
#define AXSCHED_EAGAIN      (-11)  /* another task is inside one of these calls */
#define AXSCHED_ENOMEM      (-12)  /* the record or the plan does not fit */
#define AXSCHED_EBUSY       (-16)  /* a measurement or a replay is under way */
#define AXSCHED_EINVAL      (-22)  /* no measurement is under way */
#define AXSCHED_ENOSYS      (-38)  /* the build has another policy than PBG */
#define AXSCHED_ENODATA     (-61)  /* there is no profile yet */
#define AXSCHED_EILSEQ      (-84)  /* no label: empty, over 32 bytes, not UTF-8, or with control characters */
#define AXSCHED_EOPNOTSUPP  (-95)  /* more than one CPU, and they are not connected */
#define AXSCHED_ENOTCONN    (-107) /* more than one CPU, and the running task of each is unknown */
#define AXSCHED_EALREADY    (-114) /* measuring or replaying has begun already */

/* Starts recording the caller's descendants. Returns 0.
 * EAGAIN ENOMEM EBUSY (replaying) ENOSYS EOPNOTSUPP ENOTCONN EALREADY */
int sys_measure_start(void);

/* Ends recording and makes a profile. Returns the number of tasks in it.
 * EAGAIN EINVAL ENOMEM ENOSYS */
int sys_measure_end(void);

/* Makes a plan of the profile and follows it for the caller's descendants.
 * Returns the number of tasks planned.
 * EAGAIN ENODATA EBUSY (measuring) ENOMEM ENOSYS EOPNOTSUPP EALREADY */
int sys_start_pbg(void);

/* Names the task that is spawned next, in place of its number among the spawns;
 * ends with a zero. Returns 0.
 * EILSEQ ENOSYS */
int sys_label_next(const char *label);

#ifdef __cplusplus
}
#endif

#endif
