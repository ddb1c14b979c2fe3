//! The list of policies, and the one that this build has chosen, by Cargo feature.
//!
//! A new policy is a line in [`for_each_policy!`](crate::for_each_policy). The choice of the policy,
//! the refusal of two, the names and the tests are all made from that list. `docs/new-policy.md`
//! describes the other steps.

/// Passes the list of policies to the macro `$then`. A line has the feature, the module, the task
/// and the scheduler of a policy. The name of the module is the policy's name in result lines.
///
/// `T` stands for the type that the tasks wrap, and `C` for the [`Clock`](crate::clock::Clock). The
/// macro `$then` defines both.
///
/// ```
/// macro_rules! names {
///     ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
///         [$(stringify!($module)),*]
///     };
/// }
/// let names = axsched_ext::for_each_policy!(names);
/// assert!(names.contains(&"rr"));
/// ```
#[macro_export]
macro_rules! for_each_policy {
    ($then:ident) => {
        $then! {
            "sched_fifo" fifo FifoTask FifoScheduler<T>; // the first is what no feature means
            "sched_rr"   rr   RrTask   RrScheduler<T>;
            "sched_cfs"  cfs  CfsTask  CfsScheduler<T, C>;
            "sched_eevdf" eevdf EevdfTask EevdfScheduler<T, C>;
            "sched_sjf"  sjf  SjfTask  SjfScheduler<T, C>;
            "sched_mlfq" mlfq MlfqTask MlfqScheduler<T, C>;
            "sched_coop" coop CoopTask CoopScheduler<T>;
            "sched_pbg"  pbg  PbgTask  PbgScheduler<T, C>;
            "sched_delegated" delegated DelegatedTask DelegatedScheduler<T, C>;
        }
    };
}

/// Refuses to compile with any two of these features, and names both.
#[doc(hidden)] // for the shim, which has features of its own
#[macro_export]
macro_rules! refuse_two {
    () => {};
    ($first:literal $($other:literal)*) => {
        $(
            #[cfg(all(feature = $first, feature = $other))]
            compile_error!(concat!(
                "features `", $first, "` and `", $other, "` are both on: choose one policy per build"
            ));
        )*
        $crate::refuse_two! { $($other)* }
    };
}

/// True if the PBG calls have an effect in this build.
pub const HAS_PBG: bool = cfg!(feature = "sched_pbg");

/// True if the policy of this build is recorded ([`recorded`](crate::recorded)).
pub const IS_RECORDED: bool = cfg!(feature = "recorded");

/// True if the policy of this build shares the work among CPUs ([`balance`](crate::balance)).
pub const IS_BALANCED: bool = cfg!(feature = "balanced");

crate::refuse_two! { "sched_pbg" "recorded" }

#[cfg(all(feature = "balanced", feature = "recorded"))]
compile_error!("features `balanced` and `recorded` are both on: allowed is one of them");

pub use policy::*;

macro_rules! policy {
    ($chosen:meta, $module:ident $task:ident $scheduler:ty) => {
        #[cfg($chosen)]
        mod policy {
            use crate::*;
            #[allow(dead_code, reason = "not every policy reads the time")]
            type C = clock::CpuCounter;

            /// The policy's short name, as in the result lines.
            pub const NAME: &str = stringify!($module);
            /// The task wrapper.
            pub type Task<T> = $task<T>;
            /// The scheduler of one queue.
            #[cfg(not(feature = "balanced"))]
            pub type Scheduler<T> = $scheduler;
            /// The scheduler of one queue, in the layer for several CPUs.
            #[cfg(feature = "balanced")]
            pub type Scheduler<T> = <$scheduler as balance::SmpVariant>::Smp;

            /// Makes the system's CPUs share the work.
            ///
            /// # Safety
            /// The conditions of [`SmpState::connect`](balance::SmpState::connect) must hold for
            /// [`SMP_STATE`](balance::SMP_STATE), and the tasks must wrap `T`.
            #[cfg(feature = "balanced")]
            pub unsafe fn connect<T: 'static>(machine: balance::Machine) {
                // SAFETY: the caller's promise.
                unsafe { <$scheduler as balance::SmpVariant>::connect(machine) };
            }
        }
    };
}

macro_rules! select {
    (
        $first:literal $first_module:ident $first_task:ident $first_scheduler:ty;
        $($feature:literal $module:ident $task:ident $scheduler:ty;)*
    ) => {
        policy! { not(any($(feature = $feature),*)), $first_module $first_task $first_scheduler }
        $(policy! { feature = $feature, $module $task $scheduler })*
        crate::refuse_two! { $first $($feature)* }
    };
}

crate::for_each_policy!(select);
