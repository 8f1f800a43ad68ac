package alerts

import (
	"regexp"
	"testing"
)

var exposed = regexp.MustCompile(`(?m)^# TYPE (\S+) `)

// fenceMetrics are those of the example to which fences in all languages are held, and what Go and Java count of waits.
func fenceMetrics(t *testing.T) (names []string) {
	t.Helper()
	for _, m := range exposed.FindAllStringSubmatch(read(t, repository+"/pathfence/spec/state/state.prom"), -1) {
		names = append(names, m[1])
	}
	return append(names, "pathfence_wait_seconds_sum", "pathfence_wait_seconds_count")
}

func TestAlertsOfFences(t *testing.T) {
	const well = `
load 1m
  pathfence_off{job="shop",instance="a"} 0x30
  pathfence_config_error{job="shop",instance="a"} 0x30
  pathfence_workers{job="shop",instance="a"} 8x30
  pathfence_in_flight{job="shop",instance="a",class="items"} 7x14 8 8 8 7x13
  pathfence_in_flight{job="shop",instance="a",class="orders"} 0x30
  pathfence_granted_total{job="shop",instance="a",class="items"} 0+600x30
  pathfence_shed_total{job="shop",instance="a",class="items"} 0+6x30
  pathfence_missed_total{job="shop",instance="a",class="items"} 0+6x30
`
	const rare = `
load 1m
  pathfence_granted_total{job="shop",instance="a",class="reports"} 0x20 1x10
  pathfence_shed_total{job="shop",instance="a",class="reports"} 0x20 1x10
  pathfence_missed_total{job="shop",instance="a",class="reports"} 0x20 1x10
`
	const idle = `
load 1m
  pathfence_workers{job="shop",instance="a"} 8x30
  pathfence_granted_total{job="shop",instance="a",class="items"} 5x30
  pathfence_shed_total{job="shop",instance="a",class="items"} 5x30
  pathfence_missed_total{job="shop",instance="a",class="items"} 5x30
`
	tryOut(t, rules(t, fences), map[string]string{"well": well, "rare": rare, "idle": idle}, map[string]raising{
		"PathFenceOff":              {`pathfence_off{job="shop",instance="a"} 1x30`, 1},
		"PathFenceConfigNotInForce": {`pathfence_config_error{job="shop",instance="a"} 1x30`, 1},
		"PathFenceRefuses": {"pathfence_granted_total{job=\"shop\",instance=\"a\",class=\"orders\"} 0+90x30\n" +
			"  pathfence_shed_total{job=\"shop\",instance=\"a\",class=\"orders\"} 0+10x30\n" +
			"  pathfence_shed_total{job=\"shop\",instance=\"a\",class=\"items\"} 0x30", 0.1},
		"PathFenceLate": {"pathfence_granted_total{job=\"shop\",instance=\"a\",class=\"orders\"} 0+90x30\n" +
			"  pathfence_missed_total{job=\"shop\",instance=\"a\",class=\"orders\"} 0+9x30", 0.1},
		"PathFencePoolFull": {"pathfence_workers{job=\"shop\",instance=\"a\"} 8x30\n" +
			"  pathfence_in_flight{job=\"shop\",instance=\"a\",class=\"items\"} 5x30\n" +
			"  pathfence_in_flight{job=\"shop\",instance=\"a\",class=\"orders\"} 3x30", 1},
	})
}
