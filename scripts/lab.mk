# The matrix of policies, apps and architectures, and its comparison:
# tools/schedlab, which knows none of them and calls back into make.
# In:  POLICIES (features.mk); APPS; FOUND WHERE
#      LAB   more options, as --phases 8, --repeat 10 and --shard 2/8; `make matrix
#            LAB=--help` lists them
#      A ARCH FEATURES SMP SCALE TIMING TIMEOUT, where they were given: the part
#      of the matrix that is meant; A ARCH FEATURES may be lists with commas
# Out: matrix    target/lab/<arch>/<app>/<policy>.jsonl; another SCALE, SMP or
#                TIMING has a folder of its own: target/lab-scale1000 ...
#      compare   tables; LAB_OUT gets them as files, with figures; of several folders
#                with LAB='--results DIR DIR'
#      profile   what schedlab profile says of PBG_PROFILE or PROFILE_OUT
#      gantt     the apps' consoles in target/gantt/, and the chart: GANTT_OUT
#      trace     the apps' consoles in target/trace/, and of each a file for Perfetto:
#                TRACE_OUT, if there is one policy
#      sched     the same consoles, and what schedlab sched says of them; with CPUS= both
#                are of simulate.mk: MODELLED (Makefile)
#      docs-tables, docs-check  the tables of DOCS_PAGES, from the CSV files that
#                they name: written, or compared
#      stale     the rows of docs/results/*.csv that are out of date, and what makes them again
#      lab-list  the policies, apps and architectures, and of each policy of ours the
#                title: the first line of its file; asked by schedlab
#      lab-tools the versions that results depend on; asked by schedlab
#      lab-variables  the names of make's variables; asked by who calls make and must not
#                hand on the caller's

LAB     ?=
LAB_OUT ?= target/lab-report

# $(call kept,FILE): what is published is made again piece by piece.
kept = $(if $(filter docs/results/%,$(1)),--keep)

# Pages whose tables come from docs/results/*.csv; tools/schedlab/src/docs.rs tells how.
DOCS_PAGES = $(shell grep -lE '<!-- (given|table) ' README.md docs/*.md docs/coop/*.md)

# Under which policies gantt runs the app, with the other features of FEATURES=.
GANTT_POLICIES = $(or $(POLICY),sched_rr sched_pbg)
GANTT_OTHERS   = $(filter-out $(POLICIES),$(FEATURE_LIST))
GANTT_NAME     = $(notdir $(A:%/=%))-$(ARCH)$(SCALED)$(addprefix -smp,$(filter-out 1,$(SMP)))$(addprefix -,$(filter real,$(TIMING)))
GANTT_OUT     ?= target/gantt/$(GANTT_NAME).svg
# Where a policy is: a file of the crate of policies, or a crate of its own.
POLICY_FILES = modules/sched-policies/src/$(1).rs modules/$(1)/src/lib.rs
# Not spelt out in the recipe, or a dry run would not be dry.
GANTT_RUN      = $(MAKE) --no-print-directory run TRACE=y
ifneq ($(filter gantt,$(MAKECMDGOALS)),)
  ifeq ($(filter %.svg,$(GANTT_OUT)),)
    $(error GANTT_OUT=$(GANTT_OUT): allowed is a file whose name ends in .svg)
  endif
endif

# Each architecture has a target triple in kernel.mk, which cannot be included
# for a matrix: it is about one app.
ARCHES ?= $(shell sed -n 's/^TRIPLE_\([a-z0-9_]*\).*/\1/p' scripts/kernel.mk)

# What trace and sched have of each policy, $policy in the shell; of one, the trace may go
# elsewhere.
TRACE_NAME  = $(GANTT_NAME)-$$(tr _ - <<<"$${policy\#sched_}")
TRACE_RUN   = $(MAKE) --no-print-directory run TRACE=events PROFILE_OUT=
TRACE_trace = --out "$(or $(TRACE_OUT),target/trace/$(TRACE_NAME).perfetto-trace)"
ifneq ($(TRACE_OUT),)
  ifneq ($(filter trace,$(MAKECMDGOALS)),)
    ifeq ($(filter %.perfetto-trace,$(TRACE_OUT)),)
      $(error TRACE_OUT=$(TRACE_OUT): allowed is a file whose name ends in .perfetto-trace)
    endif
    ifneq ($(words $(POLICY)),1)
      $(error TRACE_OUT=$(TRACE_OUT) FEATURES=$(FEATURES): one file for several policies; allowed is one policy of: $(POLICIES))
    endif
  endif
endif

ifneq ($(filter matrix compare simulate advise profile gantt trace sched docs-tables docs-check stale lab-tools,$(MAKECMDGOALS)),)
  include $(FOUND)
endif

# $(call given,NAME,OPTION): the option, if the user gave the variable.
given = $(if $(call is-given,$(1)),$(2) '$($(1))')
LAB_CELLS = $(call given,A,--app) $(call given,ARCH,--arch) $(call given,FEATURES,--policy) \
    $(call given,SMP,--smp) $(call given,SCALE,--scale) $(call given,TIMING,--timing)
# Whatever the cells measure, it is not the profile that the user has kept.
# The first time it is built, and a person is told why nothing happens for a while.
TELL_BUILD = $(if $(wildcard target/tool/schedlab),,echo 'make: building tools/schedlab, this once: about a minute on two cores' >&2 &&)
SCHEDLAB = $(TELL_BUILD) PROFILE_OUT= MAKE='$(MAKE)' RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) run $(WHERE) --quiet --profile tool --package schedlab --

# All cells are built and booted in make's own way otherwise.
# $(call refuse,GOAL,VARIABLES,ALLOWED,WHENCE)
refuse = $(if $(filter $(1),$(MAKECMDGOALS)),$(if $(call set-of,$(2),$(4)),$(error $(call set-of,$(2),$(4)): not of make $(1); allowed are $(3))))
set-of = $(strip $(foreach v,$(1),$(if $($(v)),$(if $(filter $(2),$(firstword $(origin $(v)))),$(v)=$($(v))))))
ANYWHERE := command environment override
NO_CELL := BALANCE MODE MEM LOG ACCEL QEMU_ARGS TRACE BLK DISK PBG_BASE PBG_PROFILE TICK_PHASE
$(call refuse,matrix,$(NO_CELL) PROFILE_OUT,A ARCH FEATURES SMP SCALE TIMING TIMEOUT LAB,$(ANYWHERE))
$(call refuse,compare,$(NO_CELL) PROFILE_OUT,A ARCH FEATURES SMP SCALE TIMING LAB LAB_OUT,command) # it runs nothing
$(call refuse,cost,$(NO_CELL) A,ARCH FEATURES SMP SCALE TIMING TIMEOUT,$(ANYWHERE))
$(call refuse,coop-cost,$(NO_CELL) A,ARCH FEATURES SMP SCALE TIMING TIMEOUT COOP_OUT,$(ANYWHERE))
$(call refuse,cost-gate,$(NO_CELL) PROFILE_OUT A SCALE SMP TIMING,ARCH FEATURES TIMEOUT GATE UPDATE,$(ANYWHERE))
$(call refuse,bench,$(NO_CELL) PROFILE_OUT A ARCH SMP SCALE TIMING TIMEOUT,FEATURES,$(ANYWHERE))
ifneq ($(filter-out $(PBG_POLICIES),$(GANTT_POLICIES)),)
  $(foreach goal,$(filter-out $(MODELLED),gantt trace sched),$(call refuse,$(goal),PBG_BASE PBG_PROFILE,these with FEATURES=sched_pbg,$(ANYWHERE)))
endif

# $(call with-rows,APPS): those that print result lines, which is what sched-tests-common does
with-rows = $(patsubst %/Cargo.toml,%,$(shell grep -lsE '^(\[dependencies\.)?sched-tests-common\>' $(addsuffix /Cargo.toml,$(1))))
# What no lab need be asked.
LAB_APPS = $(filter-out %/selftest %/cost %/coop-cost %/hog %/wake %/connections,$(call with-rows,$(APPS)))
# Nor what has no row to fill.
NO_ROWS = $(filter-out $(call with-rows,$(APPS)),$(APPS))
ifneq ($(filter-out $(MODELLED),$(filter matrix compare gantt trace sched,$(MAKECMDGOALS))),)
  LAB_PLAIN := $(strip $(foreach a,$(subst $(comma), ,$(A)),$(filter $(a:%/=%) %/$(a:%/=%),$(NO_ROWS))))
  ifneq ($(LAB_PLAIN),)
    $(error A=$(A): $(firstword $(LAB_PLAIN)) does without sched-tests-common, so it prints no figures to compare; allowed are: $(notdir $(LAB_APPS)))
  endif
endif
ifneq ($(filter matrix compare cost coop-cost cost-gate,$(MAKECMDGOALS)),)
  $(call list-of,A,$(LAB_APPS) $(notdir $(LAB_APPS)))
  $(call list-of,ARCH,$(ARCHES))
  $(call list-of,FEATURES,$(POLICIES))
  $(call scale,SCALE)
  $(call one-of,SMP,1 2 3 4 5 6 7 8)
  $(call one-of,TIMING,icount real)
  $(call number,TIMEOUT)
  $(one-counter)
endif
ifneq ($(filter-out $(MODELLED),$(filter gantt trace sched,$(MAKECMDGOALS))),)
  ifeq ($(filter $(A:%/=%) %/$(A:%/=%),$(APPS))$(wildcard $(A)/Cargo.toml),)
    $(error A=$(A): no app there; $(call meant,$(notdir $(A:%/=%)),$(notdir $(APPS)))allowed is one of: $(APPS))
  endif
  $(call one-of,ARCH,$(ARCHES))
  $(call each-of,FEATURES,$(POLICIES) $(UPSTREAM_FEATURES))
endif

.PHONY: matrix compare profile gantt trace sched docs-tables docs-check stale lab-list lab-tools lab-variables

matrix:
	$(Q)$(SCHEDLAB) matrix $(strip $(LAB_CELLS) $(call given,TIMEOUT,--timeout)) $(LAB)

compare:
	$(Q)$(SCHEDLAB) compare $(strip $(LAB_CELLS)) --out $(LAB_OUT) $(call kept,$(LAB_OUT)/) $(LAB)

# schedlab takes the name of an app's folder for the app's.
profile: APP = $(notdir $(A:%/=%))
profile:
	$(Q)$(SCHEDLAB) profile $(or $(LAB),show '$(or $(PBG_PROFILE),$(PROFILE_OUT))')

gantt:
	$(Q)mkdir -p target/gantt
	$(Q)for policy in $(GANTT_POLICIES); do \
	    $(GANTT_RUN) PROFILE_OUT= FEATURES="$$policy $(GANTT_OTHERS)" | \
	        tee "target/gantt/$(GANTT_NAME)-$$policy.log" | sed '/^SCHED-TRACE /d'; \
	done
	$(Q)$(SCHEDLAB) gantt $(GANTT_POLICIES:%=target/gantt/$(GANTT_NAME)-%.log) --out '$(GANTT_OUT)' $(LAB)

# Each policy's console, and then what is made of it. The events are for programs.
$(filter-out $(MODELLED),trace sched):
	$(Q)mkdir -p target/trace
	$(Q)for policy in $(GANTT_POLICIES); do \
	    $(TRACE_RUN) FEATURES="$$policy $(GANTT_OTHERS)" | \
	        tee "target/trace/$(TRACE_NAME).log" | sed '/^SCHED-EVENTS /d'; \
	done
	$(Q)for policy in $(GANTT_POLICIES); do $(SCHEDLAB) $@ "target/trace/$(TRACE_NAME).log" $(TRACE_$@) $(LAB); done

docs-tables:
	$(Q)$(SCHEDLAB) docs $(DOCS_PAGES)

docs-check:
	$(Q)$(SCHEDLAB) docs --check $(DOCS_PAGES)

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
