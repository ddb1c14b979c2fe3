# The same program under two commits, or two policies, side by side.
# In:  BASE          a commit; may be left out if FEATURES has two policies
#      HEAD          another; the tree as it stands if it is left out
#      FEATURES      one policy, or two: the first at BASE, the second at HEAD
#      A ARCH SCALE TIMEOUT; FEATURE_LIST (features.mk)
#      SCHEDLAB given refuse LAB_APPS (lab.mk)
# Out: ab    both tables and the difference; target/ab/<commit> is a clone of the commit,
#            target/ab/results/<commit> has what was measured of it

ifneq ($(filter ab,$(MAKECMDGOALS)),)
  $(call refuse,ab,$(NO_CELL) PROFILE_OUT SMP TIMING,BASE HEAD A ARCH FEATURES SCALE TIMEOUT,$(ANYWHERE))
  AB_APPS := $(LAB_APPS) $(filter %/cost,$(APPS))
  ifeq ($(filter 1,$(words $(A))),)
    $(error A=$(A): allowed is one of: $(notdir $(AB_APPS)))
  endif
  override A := $(or $(filter %/$(A),$(AB_APPS)),$(A:%/=%))
  ifeq ($(filter $(A),$(AB_APPS)),)
    $(error A=$(A): no app with figures to compare; $(call meant,$(notdir $(A)),$(notdir $(AB_APPS)))allowed is one of: $(notdir $(AB_APPS)))
  endif
  $(call one-of,ARCH,$(ARCHES))
  $(call each-of,FEATURES,$(POLICIES))
  $(call scale,SCALE)
  $(call number,TIMEOUT)
  ifeq ($(filter 1 2,$(words $(FEATURE_LIST))),)
    $(error FEATURES=$(FEATURES): make ab compares one policy at two commits, or two policies; allowed are one or two of: $(POLICIES))
  endif
  ifeq ($(BASE)$(word 2,$(FEATURE_LIST)),)
    $(error make ab: with what is $(FEATURES) compared? allowed is BASE=commit, or two policies in FEATURES)
  endif
  ifneq ($(HEAD),)
    ifeq ($(BASE),)
      $(error HEAD=$(HEAD): without BASE; allowed is BASE=commit with it)
    endif
  endif
  # $(call commit,NAME): its hash, or an error; two hashes are a range
  hashes = $(shell git rev-parse --verify --quiet $(call quoted,$($(1))^{commit}) 2>/dev/null)
  one-word = $(if $(filter 1,$(words $(1))),$(1))
  commit = $(if $($(1)),$(or $(call one-word,$(call hashes,$(1))),$(error $(1)=$($(1)): no such commit; allowed is one that git log shows)))
  BASE_HASH := $(call commit,BASE)
  HEAD_HASH := $(call commit,HEAD)
  include $(FOUND)
endif

AB_CELLS    = --arch '$(ARCH)' $(call given,SCALE,--scale) $(call given,TIMEOUT,--timeout)
AB_RESULTS  = target/ab/results/$(or $(1),tree)$(SCALED)
AB_FIRST    = $(firstword $(FEATURE_LIST))
AB_SECOND   = $(lastword $(FEATURE_LIST))
AB_NAME     = $(if $(1),$(1) ($(2)),this tree)

# $(call ab-cost,HASH,POLICY,MORE): the table of one side
ab-cost = $(SCHEDLAB) cost --project "$$project" --app '$(A)' $(strip $(AB_CELLS)) --policy '$(2)' \
    --csv '$(AB_RESULTS)/cost-$(ARCH)-$(2).csv' $(3)
# $(call ab-matrix,HASH,POLICY): the same of another app
ab-matrix = $(SCHEDLAB) matrix --project "$$project" --app '$(A)' $(strip $(AB_CELLS)) --policy '$(2)' \
    --results '$(AB_RESULTS)' && \
    $(SCHEDLAB) compare --project "$$project" --app '$(A)' --arch '$(ARCH)' --policy '$(2)' '$(AB_RESULTS)'
# $(call ab-side,NAME,HASH,POLICY,COMMAND)
ab-side = project=$$(scripts/ab.sh '$(2)' '$(A)'); \
    echo; echo "$(1): $(3) in $(call AB_NAME,$(2),$(if $(2),$($(1))))"; echo; $(4)

.PHONY: ab

ab:
ifeq ($(filter %/cost,$(A)),$(A))
	$(Q)$(call ab-side,BASE,$(BASE_HASH),$(AB_FIRST),$(call ab-cost,$(BASE_HASH),$(AB_FIRST)))
	$(Q)$(call ab-side,HEAD,$(HEAD_HASH),$(AB_SECOND),$(call ab-cost,$(HEAD_HASH),$(AB_SECOND),\
	    --against '$(call AB_RESULTS,$(BASE_HASH))/cost-$(ARCH)-$(AB_FIRST).csv'))
else
	$(Q)$(call ab-side,BASE,$(BASE_HASH),$(AB_FIRST),$(call ab-matrix,$(BASE_HASH),$(AB_FIRST)))
	$(Q)$(call ab-side,HEAD,$(HEAD_HASH),$(AB_SECOND),$(call ab-matrix,$(HEAD_HASH),$(AB_SECOND)))
	$(Q)echo; $(SCHEDLAB) compare --app '$(notdir $(A))' --arch '$(ARCH)' --policy '$(AB_FIRST)' --long \
	    $(if $(word 2,$(FEATURE_LIST)),--against '$(AB_SECOND)') \
	    '$(call AB_RESULTS,$(BASE_HASH))' '$(call AB_RESULTS,$(HEAD_HASH))' || [ $$? = 1 ] # they may differ
endif
