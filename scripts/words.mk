# Refuses unknown variables and targets, and a folder whose name make cannot handle, in one line
# and before anything else.
# In:  the command line
# Out: nothing, or an error that says what was given and what is allowed
#      $(call meant,WORD,ALLOWED)  a part of such an error: the word that was probably meant
#      $(call quoted,TEXT)         TEXT as one word of the shell
#      $(call one-of,NAME,ALLOWED), $(call each-of,NAME,ALLOWED), $(call list-of,NAME,ALLOWED),
#      $(call number,NAME), $(call up-to,NAME,MOST), $(call scale,NAME),
#      $(one-counter), $(tick-phase), $(profile-file)  refuse invalid values
#      $(call digits-left,TEXT), $(call is-given,NAME)

quoted = '$(subst ','\'',$(1))'
# $(call nearest,WORD,ALLOWED): the nearest allowed word, or nothing
nearest = $(shell scripts/nearest.sh $(call quoted,$(1)) $(2))
meant = $(foreach w,$(call nearest,$(1),$(2)),did you mean $(w)? )

# $(call one-of,NAME,ALLOWED)
one-of = $(if $(filter-out 1,$(words $($(1))))$(filter-out $(2),$($(1))),$(error $(1)=$($(1)): $(call meant,$($(1)),$(2))allowed is one of: $(2)))

# $(call digits-left,TEXT): TEXT without its digits
digits-left = $(subst 0,,$(subst 1,,$(subst 2,,$(subst 3,,$(subst 4,,$(subst 5,,$(subst 6,,$(subst 7,,$(subst 8,,$(subst 9,,$(1)))))))))))
# $(call number,NAME): refuses all but a whole number from 1 on
number = $(if $(filter-out 1,$(words $($(1))))$(filter 0%,$($(1)))$(call digits-left,$($(1))),$(error $(1)=$($(1)): allowed is a whole number from 1 on))
# $(call up-to,NAME,MOST): refuses all but a whole number from 1 to MOST
up-to = $(call number,$(1))$(if $(shell test $($(1)) -le $(2) 2>/dev/null && echo y),,$(error $(1)=$($(1)): allowed is a whole number from 1 to $(2)))
# $(call each-of,NAME,ALLOWED): allows one or more of them, with commas or blanks between
each-of = $(foreach w,$(firstword $(filter-out $(2),$(subst $(comma), ,$($(1))))),$(error $(1)=$($(1)): $(call meant,$(w),$(2))allowed are, as a list with commas: $(2)))
comma := ,
space := $(subst ,, )
# $(call list-of,NAME,ALLOWED): the same, with commas only, and not empty if it is given
list-of = $(if $(call is-given,$(1)),$(if $(filter-out 1,$(words $($(1))))$(findstring $(comma)$(comma),$(comma)$($(1))$(comma)),$(error $(1)=$($(1)): no names with commas between; allowed are, as a list with commas: $(2))))$(call each-of,$(1),$(2))
# $(call is-given,NAME): not empty if the user has set it
is-given = $(filter command environment override,$(firstword $(origin $(1))))
# $(call scale,NAME): refuses an invalid divisor of a 64-bit number of loops
scale = $(call up-to,$(1),1000000000)
# Counted time has one counter: an idle CPU would use up the time of the others, and riscv64
# does not even boot with several.
one-counter = $(if $(filter icount,$(TIMING)),$(if $(filter-out 1,$(SMP)),$(error TIMING=icount SMP=$(SMP): instruction counting is for one CPU; allowed are SMP=1 or TIMING=real)))

# For images and simulations.
tick-phase = $(if $(filter-out 1,$(words $(TICK_PHASE)))$(filter-out $(shell seq 0 999),$(TICK_PHASE)),$(error TICK_PHASE=$(TICK_PHASE): allowed is a whole number from 0 to 999))

# A path that is not a file may never end.
profile-file = $(if $(shell test -f $(call quoted,$(PROFILE)) -a -r $(call quoted,$(PROFILE)) && echo y),,$(error PROFILE=$(PROFILE): no file that can be read; allowed is one that make record or make run FEATURES=sched_pbg has saved))

# Make treats a name with a blank as two names, and its errors do not say so.
ifneq ($(words $(CURDIR)),1)
  $(error $(CURDIR): a folder with a blank in its name; allowed is one without)
endif

# The one list of variables. A program that calls make within a make must not hand on its
# caller's variables, and asks for the list: make -s lab-variables.
VARIABLES := A ARCH ARCEOS FEATURES SMP LOG MODE MEM SCALE TIMING ACCEL QEMU_ARGS TIMEOUT TICK_PHASE TRACE \
    PROFILE PROFILE_OUT PBG_BASE BLK DISK CPUS V T PORT LAB
# Goals that begin with lab- are for programs.
GOALS := help setup new build run serve record matrix compare simulate advise plan profile trace cost docs \
    stale test check soak interleavings lost-wakes sanitize mutants clean \
    lab-boot lab-list lab-sources lab-tools lab-variables

# Variables that make itself defines or sets by its options.
MAKES_OWN := SHELL MAKE MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKEFILES MAKELEVEL CURDIR -%
GIVEN := $(filter-out $(MAKES_OWN),$(foreach v,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(v)))),$(v))))
UNKNOWN := $(firstword $(filter-out $(VARIABLES),$(GIVEN)))
ifneq ($(UNKNOWN),)
  $(error $(UNKNOWN)=$($(UNKNOWN)): no such variable; $(call meant,$(UNKNOWN),$(VARIABLES))allowed are $(VARIABLES))
endif

# File targets are for make's own use.
UNKNOWN := $(firstword $(filter-out $(GOALS) target/%,$(MAKECMDGOALS)))
ifneq ($(filter $(VARIABLES),$(UNKNOWN)),)
  $(error $(UNKNOWN): a variable without its value; allowed is $(UNKNOWN)=value)
else ifneq ($(UNKNOWN),)
  $(error $(UNKNOWN): no such target; $(call meant,$(UNKNOWN),$(GOALS))allowed is one that make help lists)
endif
