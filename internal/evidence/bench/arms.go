package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ours is the name of Temper's arm on the kernel as it boots; "temper-full" and the like name another mode.
const ours = "temper"

// Scenarios that the bars know.
const (
	chain     = "chain"
	memcached = "memcached"
	web       = "web"
)

// IsScenario says whether the lab has a scenario of that name. Others are workloads of users.
func IsScenario(name string) bool { return slices.Contains([]string{chain, memcached, web}, name) }

// StockArms are the settings of the unmodified scheduler that Temper is compared with.
// "eevdf" is the kernel as it boots, "-full" and "-lazy" name the preemption mode.
var StockArms = []string{"eevdf", "eevdf-full", "cpuidle", "cpuidle-lazy"}

// baseName is the arm's name without the number that armLabels gives to a repeated arm.
func baseName(label string) string {
	name, _, _ := strings.Cut(label, " #")
	return name
}

// IsStock says whether an arm, by its label, is a setting of the unmodified scheduler.
func IsStock(label string) bool { return slices.Contains(StockArms, baseName(label)) }

// IsOurs says whether an arm, by its label, is Temper.
func IsOurs(label string) bool {
	return baseName(label) == ours || strings.HasPrefix(label, ours+"-")
}

// armLabels names the arms of a record. An A/A record runs one arm twice: the second is "cpuidle #2".
func armLabels(arms []Arm) []string {
	seen := map[string]int{}
	labels := make([]string, len(arms))
	for i, a := range arms {
		seen[a.Arm]++
		labels[i] = a.Arm
		if n := seen[a.Arm]; n > 1 {
			labels[i] = fmt.Sprintf("%s #%d", a.Arm, n)
		}
	}
	return labels
}

// ArmClass is a small number for an arm, the same in every report: 0 is Temper, 1 to 4 the stock arms in their order,
// 5 anything else, 6 Temper in another mode.
func ArmClass(label string) int {
	if baseName(label) == ours {
		return 0
	}
	if i := slices.Index(StockArms, baseName(label)); i >= 0 {
		return i + 1
	}
	if IsOurs(label) {
		return len(StockArms) + 2
	}
	return len(StockArms) + 1
}

// compareArms orders arms for people: stock, then peers, then Temper, whatever order they ran in.
func compareArms(a, b string) int {
	rank := func(label string) int {
		if c := ArmClass(label); c > 0 {
			return c
		}
		return len(StockArms) + 2 // with its other modes, and before them by name
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}
