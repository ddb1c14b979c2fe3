# The front door. `make help` explains it.
# In:  the variables below, from the command line or the environment
# Out: everything under target/, and only there
#
# scripts/words.mk      refuses unknown variables and targets
# scripts/features.mk   the names that FEATURES= allows
# scripts/check.mk      refuses wrong variables
# scripts/kernel.mk     how an app becomes an image
# scripts/qemu.mk       how an image boots
# scripts/arceos-0.6.mk the same two on the ArceOS of 2026, arceos-0.8.mk on its later versions
# scripts/lab.mk        many images, and their results side by side
# scripts/cost.mk       the cost of calls, yields, coroutines and connections
# scripts/simulate.mk   simulates a recording under every policy
# scripts/record.mk     records a program under any policy
# scripts/soak.mk       long runs of random programs
# scripts/serve.mk      an app with a network card, reached from the host
# scripts/help.txt      the texts of make help

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

include scripts/words.mk

A         ?= apps/sched-tests/realtime
ARCH      ?= x86_64
FEATURES  ?=
SMP       ?= 1
LOG       ?= warn
MODE      ?= release
MEM       ?= 128M
SCALE     ?= 1
TIMING    ?= $(if $(filter 1,$(SMP)),$(if $(filter serve,$(MAKECMDGOALS)),real,icount),real)
ACCEL     ?= n
BLK       ?= n
DISK      ?= $(if $(filter y,$(BLK)),target/pbg/$(APP)-$(ARCH)$(SCALED)$(TIMED).img)
QEMU_ARGS ?=
PBG_BASE  ?= rr
PROFILE   ?=
PROFILE_OUT ?= $(if $(filter record,$(MAKECMDGOALS)),$(RECORDING),target/pbg/$(APP)-$(ARCH)$(SCALED)$(TIMED)$(addprefix -,$(filter fifo,$(PBG_BASE)))$(if $(filter-out n,$(TRACE)),-traced).pbg)
TIMEOUT   ?= 300
TICK_PHASE ?= 0
TRACE     ?= n
V         ?= 0
T         ?=
PORT      ?= 5555
# The line of ArceOS.
ARCEOS := $(or $(ARCEOS),0.3)

# Suffixes of file names, for another scale and for real time.
SCALED = $(addprefix -scale,$(filter-out 1,$(SCALE)))
TIMED  = $(addprefix -,$(filter real,$(TIMING)))

include scripts/features.mk

# The apps of this tree; A= may name another.
APPS := $(patsubst %/src/main.rs,%,$(wildcard apps/*/*/src/main.rs))

# With CPUS= trace boots nothing: simulate.mk.
MODELLED := $(if $(call is-given,CPUS),$(filter trace,$(MAKECMDGOALS)))
BOOTS  := build lab-sources lab-boot run serve record
BOOTED := $(BOOTS) $(filter-out $(MODELLED),trace)

LABS     := matrix compare simulate advise plan profile trace cost docs stale lab-tools
SEARCHES := interleavings lost-wakes sanitize

# A=realtime is short for the folder of that name; messages name the folder.
ifneq ($(filter $(BOOTS) trace,$(MAKECMDGOALS)),)
  ifeq ($(words $(A))-$(wildcard $(A)/Cargo.toml)-$(words $(filter %/$(A),$(APPS))),1--1)
    override A := $(filter %/$(A),$(APPS))
  endif
endif

# Written by scripts: facts about this machine and this tree.
FOUND := target/toolchain.mk target/workspace.mk
# Options of every cargo call.
WHERE = --locked --manifest-path $(WORKSPACE)/Cargo.toml
export CARGO_TARGET_DIR := $(CURDIR)/target

include scripts/lab.mk
include scripts/cost.mk
include scripts/simulate.mk
include scripts/record.mk
include scripts/soak.mk
include scripts/serve.mk

# A goal that only prints must work with any variables; only goals that build or boot an app
# need valid ones. (trace calls make again for that, and refuses before.)
ifneq ($(filter $(BOOTED),$(MAKECMDGOALS)),)
  include scripts/check.mk
  include scripts/kernel.mk
  include scripts/qemu.mk
  ifneq ($(ARCEOS),0.3)
    include scripts/arceos-$(ARCEOS).mk
  endif
endif

# setup.sh writes where the tools are, and workspace.sh which workspace has all apps. Make reads
# these files, and restarts by itself when one has changed. A dry run (make -n) installs nothing.
# A missing file is created empty: otherwise make complains of it when setup refuses.
ifneq ($(filter $(BOOTS) $(LABS) test check soak $(SEARCHES) mutants,$(MAKECMDGOALS)),)
  $(if $(wildcard target/workspace.mk),,$(shell mkdir -p target && : >target/workspace.mk))
  include $(FOUND)
endif
target/toolchain.mk: FORCE
	@scripts/setup.sh $(if $(findstring n,$(firstword -$(MAKEFLAGS))),--check,--quiet) \
	    $(if $(filter test,$(MAKECMDGOALS)),--test) $(if $(filter host,$(COST_OF)),--bench)
target/workspace.mk: target/toolchain.mk FORCE
	@scripts/workspace.sh

Q := $(if $(filter 0,$(V)),@)

.PHONY: help setup new build lab-sources lab-boot run serve test check $(SEARCHES) mutants clean FORCE
FORCE:

help:
	@$(if $(T),$(call one-of,T,$(filter-out lab-%,$(GOALS))))APPS='$(notdir $(APPS))' POLICIES='$(POLICIES)' \
	    FEATURES='$(UPSTREAM_FEATURES)' scripts/help.sh '$(T)'

setup:
	@scripts/setup.sh --bench

build:
	$(Q)$(BUILD)

# The image's sources: schedlab asks for them, for the rows of tables that come from it.
lab-sources: build
	@sed 's/^/source: /' '$(IMAGE).sources'
	@echo 'program: $(KERNEL_DIR)/$(TRIPLE_$(ARCH))/$(MODE)/$(APP)'

# The image last built with these variables: schedlab builds once, and boots often.
lab-boot:
	$(Q)$(RUN)

run: build
	$(Q)$(RUN)

# With options, clients on this host drive it; the clients' --help needs no guest.
serve: $(if $(HELPED),,build)
	$(Q)$(if $(LAB),$(CLIENTS),$(SERVE))

ifneq ($(filter new,$(MAKECMDGOALS)),)
  ifeq ($(call is-given,A)$(HELPED),)
    $(error make new: which folder? allowed is A=apps/<group>/<name>, as A=apps/mine/hello)
  endif
endif
new:
	$(Q)scripts/new.sh $(LAB) '$(A)'

# The host's own cargo: the library and the tests build without ArceOS.
HOST_ENV = RUSTC='$(HOST_RUSTC)' CARGO='$(HOST_CARGO)' WHERE='$(WHERE)' POLICIES='$(strip $(POLICIES))'

# Built, then called, because cargo would leave variables of its own behind. The cases must not
# see the user's variables of this make.
test:
	$(Q)RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) build $(WHERE) --quiet --profile tool --package system-tests
	$(Q)$(HOST_ENV) target/tool/system-tests $(LAB) $(call quoted,$(T))

# Sources that `cargo fmt --all` does not find: modules that a macro declares, and crates outside
# the workspace.
MADE_MODULES = $(wildcard modules/axsched-ext/tests/policy/*.rs examples/*/src/*.rs examples/*/*/src/*.rs \
    arceos-0.*/old-names/*/src/*.rs arceos-0.8/limits/src/*.rs modules/ax-sched*/src/*.rs \
    modules/pbg-guest/src/*.rs modules/pbg-guest/src/*/*.rs)
ifneq ($(filter check,$(MAKECMDGOALS)),)
  $(call each-of,LAB,--fix)
endif
# Cheapest first. scripts/audit.sh exits with 2 if the registry cannot be asked (no network).
check:
	$(Q)$(HOST_CARGO) fmt --all --manifest-path $(WORKSPACE)/Cargo.toml $(if $(LAB),,--check) -- $(MADE_MODULES)
	$(Q)$(HOST_ENV) scripts/clippy.sh
	$(Q)$(HOST_ENV) scripts/doc.sh
	$(Q)$(HOST_ENV) scripts/audit.sh || test $$? = 2

$(SEARCHES):
	$(Q)$(HOST_ENV) scripts/search.sh $@

mutants:
	$(Q)$(HOST_ENV) scripts/mutants.sh $(LAB) $(call quoted,$(T))

# Removes everything that was built or measured. Keeps the tools, which setup would build again,
# and the profiles, which a user may have edited.
clean:
	$(Q)mkdir -p target
	$(Q)find target -mindepth 1 -maxdepth 1 ! -name tools ! -name toolchain.mk ! -name pbg -exec rm -rf {} +

# The makefiles are not targets, but make -B asks for them.
$(filter-out target/%,$(MAKEFILE_LIST)): ;
