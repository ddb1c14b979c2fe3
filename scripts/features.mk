# The names that FEATURES= allows, and the variables derived from it.
# In:  FEATURES SMP; RECORDED (record.mk)
# Out: POLICIES UPSTREAM_FEATURES SHARING  the lists of allowed names
#      PBG_POLICIES                 the part of POLICIES that is PBG
#      FEATURE_LIST                 FEATURES as words
#      POLICY                       the scheduling policy among them, or nothing
#      POLICY_NAME                  its name in result lines
#      UPSTREAM_LIST                the features of ArceOS among them
#      BALANCED                     the feature of a build whose CPUs share the work, or nothing

# The policies are the features sched_* and stock_* of sched-tests-common, in the order of its
# manifest, which is also the order of rows in tables. stock_* is the registry's own crate, for
# comparison.
POLICIES := $(shell sed -n '/^\[features\]/,/^\[[^f]/s/^\(\(sched\|stock\)_[a-z0-9_]*\) *=.*/\1/p' apps/sched-tests/common/Cargo.toml)
# The policies that measure and replay have names that begin with this.
PBG_POLICIES := $(filter sched_pbg%,$(POLICIES))

# ArceOS features that make sense here: all of axstd's, without the schedulers
# (ours replace them), the platform choices (ARCH= decides) and the drivers for
# boards that QEMU does not emulate; nor task-ext, which needs code in the app.
UPSTREAM_FEATURES := alloc alloc-slab alloc-tlsf alloc-buddy alloc-level-1 \
    page-alloc-64g page-alloc-4g bus-mmio bus-pci display dma dns \
    driver-ramdisk dwarf ext4fs fatfs fp-simd fs input ipi irq multitask net \
    paging rtc smp tls

# With unbalanced several CPUs do not share the work. With balanced and smp one CPU has the code for
# it, too, which shows what that costs.
SHARING := balanced unbalanced

FEATURE_LIST := $(subst $(comma), ,$(FEATURES))
POLICY := $(filter $(POLICIES),$(FEATURE_LIST))
POLICY_NAME := $(subst _,-,$(patsubst sched_%,%,$(or $(POLICY),$(firstword $(POLICIES)))))
UPSTREAM_LIST := $(sort $(filter $(UPSTREAM_FEATURES),$(FEATURE_LIST)) $(if $(filter-out 1,$(SMP)),smp))
# Not under the registry's policies, nor when recording.
MAY_BALANCE = $(or $(filter-out 1,$(SMP)),$(and $(filter balanced,$(FEATURE_LIST)),$(filter smp,$(FEATURE_LIST))))
BALANCED = $(if $(MAY_BALANCE),$(if $(filter unbalanced stock_%,$(FEATURE_LIST))$(RECORDED),,balanced))
