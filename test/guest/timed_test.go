//go:build guest

package guest

import (
	"testing"

	"temper.dev/temper/internal/base/host"
)

// Of tests that measure time on the deterministic machine (scripts/timed.sh), those here share a scheduler: to attach one
// takes longer there than most of them.

type timed struct {
	name string
	run  func(*testing.T)
}

func TestTimedTiers(t *testing.T) {
	attachTiers(t)
	runTimed(t, []timed{
		{"TiersAreStrict", tiersAreStrict},
		{"UnmappedCgroupsHaveTheirDefaults", unmappedCgroupsHaveTheirDefaults},
		{"TiersAreInherited", tiersAreInherited},
		{"MapChangeMovesACgroup", mapChangeMovesACgroup},
		{"MovedTaskChangesItsTier", movedTaskChangesItsTier},
		{"CgroupsComeAndGo", cgroupsComeAndGo},
		{"SharesFollowNestedWeightsAndNice", sharesFollowNestedWeightsAndNice},
		{"WhoLagsGivesWay", whoLagsGivesWay},
		{"DepthIsNoWayOut", depthIsNoWayOut},
		{"DeepCgroupsDoNotDelayCritical", deepCgroupsDoNotDelayCritical},
		{"WhoIsAskedToEndHasATurn", whoIsAskedToEndHasATurn},
		{"SystemAnswersAtFullCriticalLoad", systemAnswersAtFullCriticalLoad},
	})
}

// With this share one task of the system never uses it up, as on a node of six CPUs with the usual fifth.
func TestTimedSystemOnOneCPU(t *testing.T) {
	attachTiers(t, "--system-share", "40")
	runTimed(t, []timed{
		{"CriticalHasItsCPU", criticalHasItsCPUBesideSystem},
		{"BurstsLeaveTimeForCritical", burstsOfSystemLeaveTimeForCritical},
	})
}

func TestTimedWorkOfTheKernel(t *testing.T) {
	attachTiers(t)
	runTimed(t, []timed{
		{"KernelThreadsAreHeldToAShare", kernelThreadsAreHeldToAShare},
		{"SoftirqThreadGetsOn", softirqThreadGetsOn},
		{"EndlessSoftirqsLeaveTimeForCritical", endlessSoftirqsLeaveTimeForCritical},
		{"WhoMayNotMigrateGetsOn", whoMayNotMigrateGetsOn},
		{"RingWorkersGetOn", ringWorkersGetOn},
		{"BackgroundEndsItsRCUSections", backgroundEndsItsRCUSections},
		{"BackgroundReleasesLocks", backgroundReleasesLocks},
		{"ProcessOfTwoThreadsStops", processOfTwoThreadsStops},
		{"LongDutyLeavesTimeForCritical", longDutyLeavesTimeForCritical},
		{"EveryTaskRunsAtFullCriticalLoad", everyTaskRunsAtFullCriticalLoad},
	})
}

func TestTimedLimits(t *testing.T) {
	joinSystem(t)
	attach(t)
	runTimed(t, []timed{
		{"LimitIsKept", limitIsKept},
		{"LimitOfShortTurns", limitOfShortTurns},
		{"LimitsNest", limitsNest},
		{"Burst", burst},
		{"AheadIsPaidBack", aheadIsPaidBack},
		{"ThrottledTasksObey", throttledTasksObey},
		{"TurnsOfWhoIsChanged", turnsOfWhoIsChanged},
		{"ModesOfCgroups", modesOfCgroups},
	})
}

// runTimed runs them one after the other. Each finds the tiers' cgroups as the first did: they stay, and what a test has made
// below is gone, but for the controller, with which a cgroup takes no process.
func runTimed(t *testing.T, tests []timed) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Cleanup(func() {
				for _, cg := range cgroupsOfTiers {
					if file := root.Cgroup(cg + "/cgroup.subtree_control"); host.Exists(file) {
						write(t, file, "-cpu")
					}
				}
			})
			test.run(t)
		})
	}
}
