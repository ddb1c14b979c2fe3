# Connections served by coroutines and by threads: the app connections, and what schedlab makes of it.
# In:  ARCH FEATURES   maybe lists with commas; SMP SCALE TIMING TIMEOUT
#      MEM             what threads are to run out of [default: 48M]
#      SCHEDLAB given refuse ARCHES NO_CELL (lab.mk); POLICIES (features.mk)
#      LAB             more options
# Out: connections     the guests' tables; coroutines beside threads; target/connections/<arch>-<policy>.log,
#                      and .sources, what its image was made from;
#                      the figures, one in a line, in CONN_OUT

CONN_OUT ?= target/connections/connections.csv
# 1,024 connections of coroutines take a quarter of it, and as many of threads more than there is.
CONN_MEM  = $(if $(call is-given,MEM),$(MEM),48M)
CONN_ARCHES   = $(subst $(comma), ,$(ARCH))
CONN_POLICIES = $(or $(subst $(comma), ,$(FEATURES)),sched_fifo sched_coop)
# Not spelt out in the recipe, or a dry run would not be dry.
CONN_MAKE = $(MAKE) --no-print-directory A=apps/coop/connections MEM=$(CONN_MEM) PROFILE_OUT= \
    TIMEOUT=$(if $(call is-given,TIMEOUT),$(TIMEOUT),1800)

ifneq ($(filter connections,$(MAKECMDGOALS)),)
  $(call refuse,connections,A PROFILE_OUT $(filter-out MEM BALANCE,$(NO_CELL)),ARCH FEATURES SMP BALANCE SCALE TIMING MEM TIMEOUT LAB CONN_OUT,command)
  $(call list-of,ARCH,$(ARCHES))
  $(call list-of,FEATURES,$(POLICIES))
  $(call one-of,SMP,1 2 3 4 5 6 7 8)
  $(call one-of,TIMING,icount real)
  $(call scale,SCALE)
  $(call number,TIMEOUT)
  $(one-counter)
  include $(FOUND)
endif

.PHONY: connections

# The lines are for programs. A list has the time of the beginning of its build: what changes
# from then on may be in the image, or not.
connections:
	$(Q)mkdir -p target/connections
	$(Q)for arch in $(CONN_ARCHES); do for policy in $(CONN_POLICIES); do \
	    begin=$$(date +%s.%N); \
	    $(CONN_MAKE) lab-sources ARCH="$$arch" FEATURES="$$policy" | \
	        sed -n 's/^source: //p' >"target/connections/$$arch-$$policy.sources"; \
	    touch -d "@$$begin" "target/connections/$$arch-$$policy.sources"; \
	    $(CONN_MAKE) run ARCH="$$arch" FEATURES="$$policy" | \
	        tee "target/connections/$$arch-$$policy.log" | sed '/^SCHED-/d'; \
	done; done
	$(Q)$(SCHEDLAB) connections $(foreach a,$(CONN_ARCHES),$(CONN_POLICIES:%=target/connections/$(a)-%.log)) \
	    --csv '$(CONN_OUT)' $(call kept,$(CONN_OUT)) $(LAB)
