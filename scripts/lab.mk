# The matrix of policies, apps and architectures, and its comparison, by tools/schedlab. It knows none
# of them and calls back into make.
# In:  POLICIES (features.mk); APPS; WHERE
#      LAB   the goal's own options, such as --phases 8, --repeat 10 and --shard 2/8 of matrix;
#            LAB=--help lists them
#      A ARCH FEATURES SMP SCALE TIMING TIMEOUT, if given: the selected part of the matrix;
#      A ARCH FEATURES may be lists with commas
# Out: matrix    target/lab/<arch>/<app>/<policy>.jsonl; another SCALE, SMP or
#                TIMING has its own folder: target/lab-scale1000 ...
#      compare   tables on the terminal, and with charts as files in target/lab-report
#      profile   the output of schedlab profile for PROFILE or PROFILE_OUT
#      trace     the apps' consoles in target/trace/, each with a file for Perfetto, and a table;
#                with TRACE=y a chart of all instead; with CPUS= see simulate.mk
#      docs      the tables of DOCS_PAGES, from the CSV files that they name
#      stale     the rows of docs/results/*.csv that are out of date, and the commands to update them
#      lab-list  for schedlab: the policies, apps and architectures, and the title of each of our
#                policies, the first line of its file
#      lab-tools for schedlab: the versions that results depend on
#      lab-variables  for programs that call make and must not hand on their caller's variables:
#                the names of make's variables
#      HELPED    not empty if the goal only lists its options
#      OUT       the file or folder after --out in LAB=

LAB    ?=
HELPED := $(filter --help -h,$(LAB))
OUT    := $(lastword $(patsubst --out=%,%,$(filter --out=%,$(subst --out ,--out=,$(LAB)))))

# Pages whose tables come from docs/results/*.csv; tools/schedlab/src/docs.rs has the syntax.
DOCS_PAGES = $(shell grep -lE '<!-- (given|table) ' README.md docs/*.md docs/coop/*.md)

# The policies under which trace runs the app, with the other features of FEATURES=.
TRACE_POLICIES = $(or $(POLICY),sched_rr sched_pbg)
TRACE_OTHERS   = $(filter-out $(POLICIES),$(FEATURE_LIST))
TRACE_NAME     = $(notdir $(A:%/=%))-$(ARCH)$(SCALED)$(addprefix -smp,$(filter-out 1,$(SMP)))$(addprefix -,$(filter real,$(TIMING)))
TRACE_DRAWN    = $(filter y,$(TRACE))
# The console of $policy in the shell.
TRACE_LOG      = target/trace/$(TRACE_NAME)-$$(tr _ - <<<"$${policy\#sched_}")$(if $(TRACE_DRAWN),-drawn).log
# Not spelt out in the recipe, or a dry run would not be dry.
TRACE_RUN      = $(MAKE) --no-print-directory run TRACE=$(or $(TRACE_DRAWN),events) PROFILE_OUT=
ifneq ($(and $(OUT),$(filter trace,$(MAKECMDGOALS))),)
  ifneq ($(and $(TRACE_DRAWN),$(filter-out %.svg,$(OUT))),)
    $(error TRACE=y LAB=$(LAB): allowed is --out with a file whose name ends in .svg)
  endif
  ifneq ($(if $(TRACE_DRAWN),,$(filter %.svg %.png,$(OUT))),)
    $(error LAB=$(LAB): a picture is of TRACE=y; allowed is --out with a folder or a file whose name ends in .perfetto-trace)
  endif
  ifneq ($(and $(filter %.perfetto-trace,$(OUT)),$(filter-out 1,$(words $(TRACE_POLICIES)))),)
    $(error LAB=$(LAB) FEATURES=$(FEATURES): one file for several policies; allowed is one policy of: $(POLICIES))
  endif
endif
# Where a policy is: a file of the crate of policies, or a crate of its own.
POLICY_FILES = modules/sched-policies/src/$(1).rs modules/$(1)/src/lib.rs

# Each architecture has a target triple in kernel.mk, which cannot be included
# for a matrix: it is about one app.
ARCHES ?= $(shell sed -n 's/^TRIPLE_\([a-z0-9_]*\).*/\1/p' scripts/kernel.mk)

# $(call given,NAME,OPTION): the option, if the user gave the variable.
given = $(if $(call is-given,$(1)),$(2) '$($(1))')
LAB_CELLS = $(call given,A,--app) $(call given,ARCH,--arch) $(call given,FEATURES,--policy) \
    $(call given,SMP,--smp) $(call given,SCALE,--scale) $(call given,TIMING,--timing) $(LAB_LINE)
LAB_LINE  = $(if $(filter-out 0.3,$(ARCEOS)),--arceos '$(ARCEOS)')
# The cells must not overwrite the user's saved profile. The first call builds schedlab, and tells a
# person why nothing happens for a while.
TELL_BUILD = $(if $(wildcard target/tool/schedlab),,echo 'make: building tools/schedlab, this once: about a minute on two cores' >&2 &&)
SCHEDLAB = $(TELL_BUILD) PROFILE_OUT= MAKE='$(MAKE)' RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) run $(WHERE) --quiet --profile tool --package schedlab --

# Everything else of a cell is built and booted as by make run.
# $(call refuse,GOAL,VARIABLES,ALLOWED,WHENCE)
refuse = $(if $(filter $(1),$(MAKECMDGOALS)),$(if $(call set-of,$(2),$(4)),$(error $(call set-of,$(2),$(4)): not of make $(1); allowed are $(3))))
set-of = $(strip $(foreach v,$(1),$(if $($(v)),$(if $(filter $(2),$(firstword $(origin $(v)))),$(v)=$($(v))))))
ANYWHERE := command environment override
NO_CELL := MODE MEM LOG ACCEL QEMU_ARGS TRACE BLK DISK PBG_BASE PROFILE TICK_PHASE
MATRIX_MAY := A ARCH ARCEOS FEATURES SMP SCALE TIMING TIMEOUT LAB
$(call refuse,matrix,$(NO_CELL) PROFILE_OUT,$(MATRIX_MAY),$(ANYWHERE))
$(call refuse,matrix,T,$(MATRIX_MAY),command) # which selects tests, but is in the image of selftest and yield
$(call refuse,compare,$(NO_CELL) PROFILE_OUT T,$(filter-out TIMEOUT,$(MATRIX_MAY)),command) # it runs nothing
READ_PROFILE := build lab-sources lab-boot run serve trace simulate advise plan profile
$(foreach g,$(filter-out $(READ_PROFILE) help target/%,$(MAKECMDGOALS)),$(call refuse,$(g),PROFILE,$(filter-out lab-%,$(READ_PROFILE)) with it,command))
ifneq ($(filter-out $(PBG_POLICIES),$(TRACE_POLICIES)),)
  $(if $(MODELLED),,$(call refuse,trace,PBG_BASE PROFILE,these with FEATURES=sched_pbg$(comma) or CPUS=n for a recording,$(ANYWHERE)))
endif

# Goals that boot take a line of ArceOS, and so do those that read its results or its recording.
# A line whose scheduler cannot be replaced only runs.
OF_A_LINE := build run $(if $(filter 0.8,$(ARCEOS)),,record trace matrix compare soak $(if $(PROFILE),simulate) \
    $(if $(filter coop-cost connections host,$(notdir $(A:%/=%))),,cost))
ifneq ($(filter-out 0.3,$(ARCEOS)),)
  $(foreach g,$(filter-out $(OF_A_LINE) help lab-% target/%,$(MAKECMDGOALS)),$(call refuse,$(g),ARCEOS,$(strip $(OF_A_LINE)) with it,$(ANYWHERE) file))
endif

# $(call cells,ALLOWED): refuses invalid variables of cells. ARCH and FEATURES may be lists, FEATURES
# of allowed names.
cells = $(call list-of,ARCH,$(ARCHES))$(call one-of,ARCEOS,0.3 0.6)$(call list-of,FEATURES,$(1))$(call scale,SCALE)$(call one-of,SMP,1 2 3 4 5 6 7 8)$(call one-of,TIMING,icount real)$(call number,TIMEOUT)$(one-counter)

# $(call with-rows,APPS): those that print result lines, through sched-tests-common
with-rows = $(patsubst %/Cargo.toml,%,$(shell grep -lsE '^(\[dependencies\.)?sched-tests-common\>' $(addsuffix /Cargo.toml,$(1))))
# The apps with rows in tables, which run under every policy.
LAB_APPS = $(filter-out %/selftest %/cost %/coop-cost %/hog %/wake %/connections %/bandwidth %/cycle %/faults %/planned,$(call with-rows,$(APPS)))
# The apps without result lines, which a row needs.
NO_ROWS = $(filter-out $(call with-rows,$(APPS)),$(APPS))
ifneq ($(filter-out $(MODELLED),$(filter matrix compare trace,$(MAKECMDGOALS))),)
  LAB_PLAIN := $(strip $(foreach a,$(subst $(comma), ,$(A)),$(filter $(a:%/=%) %/$(a:%/=%),$(NO_ROWS))))
  ifneq ($(LAB_PLAIN),)
    $(error A=$(A): $(firstword $(LAB_PLAIN)) does without sched-tests-common, so it prints no figures to compare; allowed are: $(notdir $(LAB_APPS)))
  endif
endif
ifneq ($(filter matrix compare,$(MAKECMDGOALS)),)
  $(call list-of,A,$(LAB_APPS) $(notdir $(LAB_APPS)))
  $(call cells,$(POLICIES))
endif

.PHONY: matrix compare profile trace docs stale lab-list lab-tools lab-variables

matrix:
	$(Q)$(SCHEDLAB) matrix $(strip $(LAB_CELLS) $(call given,TIMEOUT,--timeout)) $(LAB)

compare:
	$(Q)$(SCHEDLAB) compare $(strip $(LAB_CELLS)) --out target/lab-report $(LAB)

# schedlab uses the name of an app's folder as the app's.
profile: APP = $(notdir $(A:%/=%))
profile:
	$(Q)$(SCHEDLAB) profile $(or $(LAB),show '$(or $(PROFILE),$(PROFILE_OUT))')

# Each policy's console, and then its table. Some lines are for programs.
ifeq ($(MODELLED),)
trace:
ifneq ($(HELPED),)
	$(Q)$(SCHEDLAB) $(if $(TRACE_DRAWN),gantt,trace) --help
else
	$(Q)mkdir -p target/trace
	$(Q)for policy in $(TRACE_POLICIES); do \
	    $(TRACE_RUN) FEATURES="$$policy $(TRACE_OTHERS)" | tee "$(TRACE_LOG)" | sed -E '/^SCHED-(EVENTS|TRACE) /d'; \
	done
	$(Q)logs=(); for policy in $(TRACE_POLICIES); do logs+=("$(TRACE_LOG)"); done; \
	$(if $(TRACE_DRAWN),$(SCHEDLAB) gantt "$${logs[@]}" --out target/trace/$(TRACE_NAME).svg $(LAB),\
	    for log in "$${logs[@]}"; do $(SCHEDLAB) trace "$$log" --out target/trace $(LAB); done)
endif
endif

docs:
	$(Q)$(SCHEDLAB) docs $(DOCS_PAGES) $(LAB)

stale:
	$(Q)$(SCHEDLAB) stale $(LAB)

# An app that tests the instruments has no row to fill, and one without any has no
# turnaround to fill it with.
lab-list:
	@echo policies $(POLICIES)
	@echo apps $(LAB_APPS)
	@echo arches $(ARCHES)
	@$(foreach policy,$(patsubst sched_%,%,$(filter sched_%,$(POLICIES))),$(foreach file,$(wildcard $(call POLICY_FILES,$(policy))),sed -n '1s|^//! \(.*\)\.$$|title $(policy) \1|p' $(file);))

lab-variables:
	@echo $(VARIABLES)

lab-tools:
	@$(RUSTC) --version
	@$(foreach arch,$(ARCHES),qemu-system-$(arch) --version | head -n 1;)
