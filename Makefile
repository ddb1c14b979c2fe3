# The front door. `make help` explains it.
# In:  the variables below, from the command line or the environment
# Out: everything under target/, and only there
#
# scripts/words.mk      refuses variables and targets that there are not
# scripts/features.mk   which FEATURES= there are
# scripts/check.mk      refuses wrong variables
# scripts/kernel.mk     how an app becomes an image
# scripts/qemu.mk       how an image boots
# scripts/lab.mk        many images, and their results side by side
# scripts/experiments.mk  measurements with a table of their own
# scripts/simulate.mk   a recording under every policy
# scripts/record.mk     a recording under any policy
# scripts/soak.mk       random programs for long
# scripts/serve.mk      an app with a network card, reached from the host
# scripts/connections.mk  connections served by coroutines and by threads

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

include scripts/words.mk

A         ?= apps/sched-tests/realtime
KIND      ?= tasks
ARCH      ?= x86_64
FEATURES  ?=
SMP       ?= 1
BALANCE   ?= y
LOG       ?= warn
MODE      ?= release
MEM       ?= 128M
SCALE     ?= 1
TIMING    ?= $(if $(filter 1,$(SMP)),$(if $(filter serve http-test,$(MAKECMDGOALS)),real,icount),real)
ACCEL     ?= n
BLK       ?= n
DISK      ?= $(if $(filter y,$(BLK)),target/pbg/$(APP)-$(ARCH)$(SCALED)$(TIMED).img)
QEMU_ARGS ?=
PBG_BASE  ?= rr
PBG_PROFILE ?=
PROFILE_OUT ?= $(if $(filter record,$(MAKECMDGOALS)),$(RECORDING),target/pbg/$(APP)-$(ARCH)$(SCALED)$(TIMED)$(addprefix -,$(filter fifo,$(PBG_BASE)))$(if $(filter-out n,$(TRACE)),-traced).pbg)
TIMEOUT   ?= 300
TICK_PHASE ?= 0
TRACE     ?= n
V         ?= 0
T         ?=
JOBS      ?=
MINUTES   ?= 60
PORT      ?= 5555

# In the names of what belongs to one scale, and to real time.
SCALED = $(addprefix -scale,$(filter-out 1,$(SCALE)))
TIMED  = $(addprefix -,$(filter real,$(TIMING)))

include scripts/features.mk

# The apps of this tree; A= may name another.
APPS := $(patsubst %/src/main.rs,%,$(wildcard apps/*/*/src/main.rs))

# With CPUS= trace and sched boot nothing: simulate.mk.
MODELLED := $(if $(call is-given,CPUS),$(filter trace sched,$(MAKECMDGOALS)))
BOOTS := $(filter-out $(MODELLED),build lab-sources run justrun serve http-test record gantt trace sched)

# A=realtime is short for the folder of that name; what is said of it is the folder.
ifneq ($(filter build lab-sources run justrun serve http-test record gantt trace sched,$(MAKECMDGOALS)),)
  ifeq ($(words $(A))-$(wildcard $(A)/Cargo.toml)-$(words $(filter %/$(A),$(APPS))),1--1)
    override A := $(filter %/$(A),$(APPS))
  endif
endif

# What scripts have found out about this machine and this tree.
FOUND := target/toolchain.mk target/workspace.mk
# What cargo is told, whatever it does.
WHERE = --locked --manifest-path $(WORKSPACE)/Cargo.toml
export CARGO_TARGET_DIR := $(CURDIR)/target

include scripts/lab.mk
include scripts/experiments.mk
include scripts/simulate.mk
include scripts/record.mk
include scripts/soak.mk
include scripts/serve.mk
include scripts/connections.mk

# What only reads the terminal must work whatever the variables say, and only
# what builds or boots an app needs them to be right. (gantt, trace and sched call make again
# for that, and refuse before.)
ifneq ($(filter $(BOOTS),$(MAKECMDGOALS)),)
  include scripts/check.mk
  include scripts/kernel.mk
  include scripts/qemu.mk
endif

# setup writes down where the tools are, and workspace.sh in which workspace cargo knows
# all apps. Make reads these files, and starts over by itself when one has changed. A dry
# run (make -n) installs nothing. A file that is not there yet is an empty one: where setup
# refuses, make would complain of it as well.
ifneq ($(filter build lab-sources run justrun serve http-test record test test-list soak interleavings lost-wakes sanitize mutants fuzz clippy fmt doc audit prepush,$(MAKECMDGOALS)),)
  $(if $(wildcard target/workspace.mk),,$(shell mkdir -p target && : >target/workspace.mk))
  include $(FOUND)
endif
target/toolchain.mk: FORCE
	@scripts/setup.sh $(if $(findstring n,$(firstword -$(MAKEFLAGS))),--check,--quiet) \
	    $(if $(filter bench test prepush,$(MAKECMDGOALS)),--bench)
target/workspace.mk: target/toolchain.mk FORCE
	@scripts/workspace.sh

Q := $(if $(filter 0,$(V)),@)

.PHONY: help setup build lab-sources run justrun serve http-test new test test-list interleavings lost-wakes sanitize mutants fuzz clippy fmt doc audit clean prepush FORCE
FORCE:

setup:
	@scripts/setup.sh --bench

build:
	$(Q)$(BUILD)

# What the image was made of: asked by schedlab, for the rows of tables that come from it.
lab-sources: build
	@sed 's/^/source: /' '$(IMAGE).sources'

run: build
	$(Q)$(RUN)

justrun:
	$(Q)$(RUN)

serve: build
	$(Q)$(SERVE)

http-test: build
	$(Q)$(HTTP_TEST)

ifneq ($(filter new,$(MAKECMDGOALS)),)
  $(call one-of,KIND,tasks plain)
  ifeq ($(call is-given,A),)
    $(error make new: which folder? allowed is A=apps/<group>/<name>, as A=apps/mine/hello)
  endif
endif
ifneq ($(filter mutants fuzz,$(MAKECMDGOALS)),)
  $(call number,MINUTES)
endif
new:
	$(Q)scripts/new.sh '$(A)' '$(KIND)'

# The host's own cargo: the library and the tests build without ArceOS.
HOST_ENV = RUSTC='$(HOST_RUSTC)' CARGO='$(HOST_CARGO)' WHERE='$(WHERE)' POLICIES='$(strip $(POLICIES))'

# Built, then called, as cargo would leave variables of its own behind. The cases must not see
# what the user gave to this make.
TESTS = RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) build $(WHERE) --quiet --profile tool --package system-tests && \
    $(HOST_ENV) JOBS='$(JOBS)' target/tool/system-tests
ifneq ($(filter test prepush,$(MAKECMDGOALS)),)
  $(if $(JOBS),$(call number,JOBS))
endif

test:
	$(Q)$(TESTS) $(call quoted,$(T))

test-list:
	$(Q)$(TESTS) --list $(call quoted,$(T))

interleavings:
	$(Q)$(HOST_ENV) scripts/interleavings.sh

lost-wakes:
	$(Q)$(HOST_ENV) scripts/lost-wakes.sh

sanitize:
	$(Q)$(HOST_ENV) scripts/sanitize.sh

mutants:
	$(Q)$(HOST_ENV) MINUTES='$(MINUTES)' scripts/mutants.sh '$(T)'

fuzz:
	$(Q)$(HOST_ENV) MINUTES='$(MINUTES)' scripts/fuzz.sh

clippy:
	$(Q)$(HOST_ENV) scripts/clippy.sh

# Sources that `cargo fmt --all` does not find: modules that a macro declares, and crates outside
# the workspace.
MADE_MODULES = $(wildcard modules/axsched-ext/tests/policy/*.rs examples/*/src/*.rs examples/*/*/src/*.rs)
fmt:
	$(Q)$(HOST_CARGO) fmt --all --manifest-path $(WORKSPACE)/Cargo.toml -- $(MADE_MODULES)

doc:
	$(Q)RUSTC='$(HOST_RUSTC)' RUSTDOCFLAGS='-D warnings' \
	    $(HOST_CARGO) doc $(WHERE) --no-deps --package axsched-ext --package sched-core --package sched-policies --package sched-smp \
	    --package pbg --package pbg-record --package pbg-profile --package sched-model --package sched-tests-results
	@echo "doc: target/doc/axsched_ext/index.html target/doc/sched_tests_results/index.html"

audit:
	$(Q)$(HOST_ENV) scripts/audit.sh

# What CI runs, cheapest first.
prepush:
	$(Q)$(HOST_CARGO) fmt --all --manifest-path $(WORKSPACE)/Cargo.toml --check -- $(MADE_MODULES)
	$(Q)$(HOST_ENV) scripts/clippy.sh
	$(Q)$(TESTS)

# Everything that was built or measured; not the tools, which setup would build again,
# and not the profiles, which somebody may have edited.
clean:
	$(Q)mkdir -p target
	$(Q)find target -mindepth 1 -maxdepth 1 ! -name tools ! -name toolchain.mk ! -name pbg -exec rm -rf {} +

# The makefiles are no targets, but make -B asks for them.
$(filter-out target/%,$(MAKEFILE_LIST)): ;

define HELP
A scheduler kit for ArceOS: pick a policy, boot it, read the turnaround table.

  make run FEATURES=sched_pbg            record the workload, replay it, compare
  make run FEATURES=sched_rr ARCH=riscv64
  make run FEATURES=stock_rr             the same with ArceOS's own scheduler
  make run FEATURES=sched_rr,fp-simd LOG=info SMP=2

Which policy for which program? In one screen, from one recording:

  make advise A=batch-at-once            which to take, and why
  make simulate A=batch-at-once CPUS=1,4 all of them, in seconds

All of them on QEMU, side by side:

  make matrix SCALE=100                  every policy, app and architecture
  make compare SCALE=100                 tables; as files in target/lab-report
  make matrix A=realtime,yield ARCH=riscv64 FEATURES=sched_pbg,stock_cfs
  make gantt FEATURES=sched_rr,sched_pbg who had the CPU when: a picture

Targets
  setup     install what is missing; every other target does it on its own
  build     build the app A into a bootable image under target/images/
  run       build it, boot it on QEMU; fails if the guest does
  justrun   boot the image last built with the same variables
  serve     build A, an app that listens on a network, and boot it with a card:
              http://127.0.0.1:PORT on this host is port 5555 of the guest,
              until the guest ends, TIMEOUT or Ctrl-C
  http-test the same with A=http or A=http-threads, driven from this host: 200
              connections at once, 10,000 requests, slow and broken clients;
              LAB='--connections 50 --requests 500' others; LAB=--help tells all
  record    the same under any policy, recorded: what each task did, into a
              file for make profile and make simulate; PROFILE_OUT=file
  new       make a folder for a program of your own: make new A=apps/mine/hello;
              KIND=plain: one that does without the helpers of the test programs
  matrix    run all, or the part that A= ARCH= FEATURES= name; what did not
              change is not run again; LAB='--shard 2/8' runs the second of
              eight parts, for eight machines; LAB=--help tells more
  compare   tables and figures of what matrix ran; LAB_OUT=folder gets them;
              LAB='--results DIR DIR' takes parts from several folders
  advise    which policy for A, on CPUS= of 1 to 64, and why: records A if there
              is no recording, or takes PROFILE=file, and plays it under all
  simulate  A under every policy, or those of FEATURES=, on CPUS= of 1 to 64, in
              virtual time: from one recording, which it makes if there is none,
              or PROFILE=file; LAB=--help tells more
  cost      instructions per yield of every policy, by the number of tasks;
              ARCH= and FEATURES= may be lists, as for matrix; PHASES=8: the
              mean over so many phases of the timer tick
  coop-cost what coroutines cost beside threads: to switch, to spawn, to wake,
              and in memory; ARCH= and FEATURES= may be lists, COOP_OUT=file
              gets CSV
  cost-gate fails if a yield costs more than docs/results/cost-gate.csv says,
              under the policies and architectures of FEATURES= and ARCH=;
              UPDATE=y writes what was measured; GATE=file is another file
  bench     what each call of a scheduler costs on the host, with 4 to 4,096
              tasks: instructions and cache misses of 4,096 calls, counted by
              Callgrind; and what a task takes. FEATURES=a,b some of them
  profile   show the profile that PBG_PROFILE= names, or that run saved with the
              same variables; LAB='edit FILE ...' changes it, LAB='merge DIR
              -o FILE' makes one of many runs; LAB=--help tells the rest
  connections
            requests to 1 to 1,024 connections, served by coroutines and by
            threads: answers a second, latency, memory, by priority, too; ARCH=
            and FEATURES= may be lists; the figures go to CONN_OUT=file.csv
  gantt     run A with TRACE=y under the policies that FEATURES= names and draw
              when each task had its CPU, into target/gantt/; GANTT_OUT=file.svg
  trace     run A with TRACE=events under these policies and write each switch,
              of each policy a file for https://ui.perfetto.dev, into
              target/trace/; TRACE_OUT=file.perfetto-trace for one policy;
              with CPUS= nothing is booted: they are played as by simulate
  sched     the same runs as a table, as perf sched has it: per task run, ready
              and blocked, switches by reason, wake-up latency and behind whom;
              with CPUS= as played by simulate, too
  docs-tables, docs-check
            write the tables of README.md and docs/ from docs/results/*.csv, or
              say where they differ; compare and cost make those files, with
              LAB_OUT=docs/results and COST_OUT=docs/results/cost.csv
  stale     the rows of docs/results/*.csv whose sources or tools have changed
              since, and the command that makes each again; builds nothing;
              LAB=--release: those of real time or without a stamp count
  test      all tests: library, make itself, QEMU; T=word runs some of them,
              JOBS=n so many at a time
  test-list the names of the tests; T=word those that have it in their name
  soak      every policy in the model for over a million dispatches, and as many
              steps of several CPUs; T=word one
              MINUTES=n: booted instead, tasks that do at random all that tasks
              do, n minutes under each of our policies, and nobody may wait for
              10 s; BOOTS=n: n boots of each, of 3 s if MINUTES is not given;
              ARCH= and FEATURES= may be lists; LAB=--help tells more
  interleavings
            every order in which CPUs can touch what they share without a lock,
            explored with loom; prints how many there are of each scenario
  lost-wakes
            a million random schedules of threads that wake, cancel, join and
            serve coroutines, by Shuttle; and COPS's order of steps, in which it
            has to find a wake that is lost
  sanitize  the coroutines' tests under the address and the thread sanitizer
  mutants   break the policies, and the domain and the worker of axcoop, line by
              line and see whether a test notices;
              T=word some of them; MINUTES=60 the limit, then go on later;
              MUTANTS=again tries those again that were caught
  fuzz      throw bytes at the profile's decoder, with libFuzzer; MINUTES=60
  clippy    lint, warnings are errors         fmt   format the sources
  doc       the library's documentation       clean keep only tools and profiles
  audit     refuse dependencies that were yanked since, or that a security
              advisory names (for those it needs cargo-audit)
  prepush   what CI runs: format check, clippy, test

Variables           default      allowed
  A=folder          realtime     the app, one of:$(call list,$(APPS))
  KIND=name         tasks        what new makes: tasks, with a row each in the
                                   tables; or plain, an ordinary program
  FEATURES=a,b      (FIFO)       at most one policy of:$(call list,$(POLICIES))
                                 and any features of ArceOS, listed below
  ARCH=name         x86_64       x86_64 riscv64 aarch64
  SMP=n             1            CPUs, 1 to 8; more than 1 needs TIMING=real
  BALANCE=n         y            with SMP > 1: CPUs do not share the work; they
                                   do under our policies, and not while
                                   record watches; and of make simulate, trace
                                   and sched, with CPUS > 1
  CPUS=n,m          1            of make simulate: CPUs, 1 to 64; or a list;
                                   of make advise: one number; with it trace
                                   and sched boot nothing
  PROFILE=file                   of the same: a profile of A, ARCH, SCALE
  CHECK=y           n            of make simulate: also on QEMU, both printed
  TIMING=name       icount       icount: time is counted instructions, results
                                   are the same on every run; one CPU only
                                 real: the host's time (default if SMP > 1)
  SCALE=n           1            divide the workload by n
  LOG=level         warn         off error warn info debug trace
  MODE=name         release      release debug
  MEM=size          128M         the guest's memory, in M or G
  TIMEOUT=n         300          seconds until a guest counts as hung
  TICK_PHASE=n      0            at which phase of the timer tick the program
                                   starts, in thousandths: 0 to 999; of the
                                   same image; with TIMING=icount
  TRACE=y           n            also print when each task had its CPU; events:
                                   print each switch instead
  ACCEL=y           n            KVM; needs ARCH = the host's and TIMING=real
  PORT=n            5555         of make serve and http-test: which port of this
                                   host, 1 to 65535
  QEMU_ARGS='...'                added to QEMU's command line
  PROFILE_OUT=file               where run saves the profile that PBG measured;
                                   default target/pbg/<app>-<arch>.pbg, with
                                   -scale<n>, -real, -fifo, -traced where that
                                   is so; an edited one there becomes <file>.old
                                   default of record: target/recordings/<app>-
                                   <arch>-<policy>.pbg, with -smp<n> as well
  PBG_PROFILE=file               a profile to build in: only replayed; of the
                                   same app, ARCH, SCALE, SMP and TIMING
  PBG_BASE=name     rr           what PBG measures under: rr or fifo
  BLK=y             n            a FAT32 disk, on which PBG keeps its profile
  DISK=file                      that disk, made if it is not there;
                                   default target/pbg/<app>-<arch>.img, likewise
  JOBS=n            (CPUs)       how many tests make test runs at a time
  MINUTES=n         60           how long: of make mutants and fuzz; of soak: of
                                   the guest's time, without a default
  BOOTS=n           1            of make soak: how often each policy is booted
  SEED=n            (random)     of make soak: what the first boot's tasks do
  SELFTEST=case                  the case of the app selftest, as in its main.rs
  SCHED_YIELDS=n    100000       yields of each task of the app yield
  V=n               0            1: show commands; 2: cargo's, too

Features of ArceOS, named as there
  $(wordlist 1,6,$(UPSTREAM_FEATURES))
  $(wordlist 7,14,$(UPSTREAM_FEATURES))
  $(wordlist 15,99,$(UPSTREAM_FEATURES))

Everything is built under target/. Consoles are kept in target/logs/.
endef
define newline


endef
list = $(foreach word,$(1),$(newline)                                   $(word))

help:
	@: $(info $(HELP))
