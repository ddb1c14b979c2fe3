# Refuses wrong variables in one line, before anything is installed or built.
# In:  every variable of `make help`; KVM_DEVICE from the environment, for a test;
#      APPS; the lists of features.mk; one-of, number, scale, one-counter, tick-phase, profile-file, meant (words.mk)
# Out: nothing, or an error that says what was given and what is allowed

# $(call path,NAME): refuses all but one file, whose name means nothing to make, the shell or QEMU
open    := (
close   := )
hash    := \#
special := $(comma) $(open) $(close) [ ] $(hash) ' " ` $$ \ ; : & | < > * ? ! ~
path = $(if $(strip $(filter-out 1,$(words $($(1)))) $(foreach c,$(special),$(findstring $(c),$($(1))))),$(error $(1)=$($(1)): allowed is one file, without blanks and $(special) in its name))
# $(call no-folder,NAME)
no-folder = $(if $(filter %/,$($(1)))$(wildcard $($(1))/.),$(error $(1)=$($(1)): a folder; allowed is a file))

ifneq ($(words $(A)),1)
  $(error A=$(A): allowed is one app folder, such as: $(APPS))
endif
ifeq ($(and $(wildcard $(A)/Cargo.toml),$(wildcard $(A)/src/main.rs)),)
  $(error A=$(A): no app there; $(call meant,$(notdir $(A:%/=%)),$(notdir $(APPS)))allowed is a folder with Cargo.toml and src/main.rs, such as: $(APPS))
endif

$(call one-of,ARCH,x86_64 riscv64 aarch64)
$(call one-of,ARCEOS,0.3 0.6 0.8)
$(call one-of,SMP,1 2 3 4 5 6 7 8)
$(call one-of,LOG,off error warn info debug trace)
$(call one-of,MODE,release debug)
$(call one-of,TIMING,icount real)
$(call one-of,ACCEL,n y)
$(call one-of,TRACE,n y events)
$(call one-of,BLK,n y)
$(call one-of,V,0 1 2)
$(call scale,SCALE)
$(call number,TIMEOUT)

# Three digits are written into the image.
$(tick-phase)
ifneq ($(TICK_PHASE)-$(TIMING),0-$(TIMING))
  ifneq ($(TIMING),icount)
    $(error TICK_PHASE=$(TICK_PHASE) TIMING=$(TIMING): real time cannot be told its phase; allowed are TICK_PHASE=0 or TIMING=icount)
  endif
endif

UNKNOWN_FEATURES := $(filter-out $(POLICIES) $(UPSTREAM_FEATURES) $(SHARING),$(FEATURE_LIST))
ifneq ($(UNKNOWN_FEATURES),)
  $(error FEATURES=$(FEATURES): unknown: $(UNKNOWN_FEATURES); $(call meant,$(firstword $(UNKNOWN_FEATURES)),$(POLICIES) $(UPSTREAM_FEATURES) $(SHARING))allowed are one policy of: $(POLICIES); and any of: $(UPSTREAM_FEATURES) $(SHARING))
endif
ifneq ($(word 2,$(sort $(filter $(SHARING),$(FEATURE_LIST)))),)
  $(error FEATURES=$(FEATURES): CPUs share the work or do not; allowed is one of: $(SHARING))
endif
ifneq ($(and $(filter 1,$(SMP)),$(filter unbalanced,$(FEATURE_LIST))),)
  $(error FEATURES=$(FEATURES) SMP=1: one CPU has no other to share with; allowed is SMP=2 or more)
endif
ifneq ($(if $(BALANCED),,$(filter balanced,$(FEATURE_LIST))),)
  $(error FEATURES=$(FEATURES): balanced has no effect; allowed is it with SMP=2 or with smp, under our policies, and not when they are recorded)
endif
ifneq ($(word 2,$(if $(filter trace,$(MAKECMDGOALS)),,$(POLICY))),)
  $(error FEATURES=$(FEATURES): two policies: $(POLICY); allowed is at most one of: $(POLICIES))
endif

$(call one-of,PBG_BASE,rr fifo)
ifneq ($(PBG_BASE),rr)
  ifeq ($(filter $(PBG_POLICIES),$(POLICY)),)
    $(error PBG_BASE=$(PBG_BASE) FEATURES=$(FEATURES): only PBG measures; allowed are $(addprefix FEATURES=,$(PBG_POLICIES)))
  endif
  ifneq ($(strip $(PROFILE)),)
    $(error PBG_BASE=$(PBG_BASE) PROFILE=$(PROFILE): a profile that is built in is not measured; allowed is one of them)
  endif
endif
ifneq ($(strip $(PROFILE)),)
  $(call path,PROFILE)
  $(call no-folder,PROFILE)
  $(profile-file)
  ifeq ($(filter $(PBG_POLICIES),$(POLICY)),)
    $(error PROFILE=$(PROFILE) FEATURES=$(FEATURES): a profile is for PBG; allowed are $(addprefix FEATURES=,$(PBG_POLICIES)))
  endif
  ifeq ($(BLK),y)
    $(error PROFILE=$(PROFILE) BLK=y: two places for a profile; allowed is one of them)
  endif
endif
# These programs take T. With other goals it selects tests.
ifneq ($(filter %/selftest,$(A:%/=%)),)
  ifneq ($(strip $(filter-out 0 1,$(words $(T))) $(foreach c,/ $(special),$(findstring $(c),$(T)))),)
    $(error T=$(T): allowed is one case of $(A)/src/main.rs)
  endif
else ifneq ($(filter %/yield,$(A:%/=%)),)
  ifneq ($(T),)
    $(call number,T)
  endif
else ifeq ($(filter-out $(BOOTED),$(MAKECMDGOALS)),)
  ifeq ($(origin T),command line)
    $(error T=$(T): not of $(A); allowed is A=selftest or A=yield with it)
  endif
endif
ifneq ($(PROFILE_OUT),)
  $(call path,PROFILE_OUT)
  $(call no-folder,PROFILE_OUT)
endif
ifeq ($(BLK),y)
  $(call path,DISK)
  $(call no-folder,DISK)
else ifneq ($(strip $(DISK)),)
  $(error DISK=$(DISK) BLK=$(BLK): a disk needs BLK=y; allowed is BLK=y or no DISK)
endif

ifneq ($(words $(MEM))$(call digits-left,$(patsubst %G,%,$(MEM:%M=%)))$(filter 0%,$(MEM))$(filter-out %M %G,$(MEM)),1)
  $(error MEM=$(MEM): allowed is a size in M or G, such as 128M or 1G)
endif
# With this much, realtime recorded and replayed. On x86_64 it hangs with 15M, on riscv64 QEMU has
# no room with 4M, on aarch64 less was not tried. scripts/build.sh checks larger images.
LEAST_MEM_x86_64  := 16
LEAST_MEM_riscv64 := 6
LEAST_MEM_aarch64 := 6
# TRACE=events takes 8 MiB for the log, and for each phase as much as it has used.
LEAST_MEM_OF_EVENTS := 32
ifeq ($(TRACE),events)
  ifneq ($(shell test $(patsubst %G,%000,$(MEM:%M=%)) -lt $(LEAST_MEM_OF_EVENTS) && echo y),)
    $(error MEM=$(MEM) TRACE=events: too little for the log of events; allowed is at least $(LEAST_MEM_OF_EVENTS)M)
  endif
endif
ifneq ($(shell test $(patsubst %G,%000,$(MEM:%M=%)) -lt $(LEAST_MEM_$(ARCH)) && echo y),)
  $(error MEM=$(MEM) ARCH=$(ARCH): too little to boot; allowed is at least $(LEAST_MEM_$(ARCH))M)
endif

$(one-counter)

KVM_DEVICE ?= /dev/kvm
HOST_ARCH := $(patsubst arm64,aarch64,$(shell uname -m))
ifeq ($(ACCEL),y)
  ifneq ($(ARCH),$(HOST_ARCH))
    $(error ACCEL=y ARCH=$(ARCH): KVM runs only the host's own architecture; allowed are ARCH=$(HOST_ARCH) or ACCEL=n)
  endif
  ifneq ($(TIMING),real)
    $(error ACCEL=y TIMING=$(TIMING): KVM cannot count instructions; allowed are TIMING=real or ACCEL=n)
  endif
  ifeq ($(wildcard $(KVM_DEVICE)),)
    $(error ACCEL=y: no KVM here, there is no $(KVM_DEVICE); allowed is ACCEL=n)
  endif
  ifeq ($(shell test -r '$(KVM_DEVICE)' -a -w '$(KVM_DEVICE)' && echo y),)
    $(error ACCEL=y: no permission for KVM, $(KVM_DEVICE) cannot be read and written; allowed are ACCEL=n or a user of its group, most often kvm)
  endif
endif
ifeq ($(ARCH)-$(TIMING),x86_64-real)
  ifneq ($(HOST_ARCH),x86_64)
    $(error ARCH=x86_64 TIMING=real: the guest reads the host's time stamp counter, which a $(HOST_ARCH) host lacks; allowed are TIMING=icount SMP=1 or another ARCH)
  endif
endif
