package host_test

import (
	"testing"

	"temper.dev/temper/internal/base/fixture"
)

func TestThreadsOfACoreCountOnce(t *testing.T) {
	root := fixture.Node(t, fixture.Files{
		"/sys/devices/system/cpu/cpu0/topology/thread_siblings_list":  "0,2\n",
		"/sys/devices/system/cpu/cpu1/topology/thread_siblings_list":  "1,10\n",
		"/sys/devices/system/cpu/cpu2/topology/thread_siblings_list":  "0,2\n",
		"/sys/devices/system/cpu/cpu10/topology/thread_siblings_list": "1,10\n",
		"/sys/devices/system/cpu/cpu3/online":                         "0\n",
		"/sys/devices/system/cpu/cpufreq/boost":                       "1\n",
	})
	if cores, err := root.Cores(); cores != 2 || err != nil {
		t.Errorf("%d, %v", cores, err)
	}
	if cores, err := fixture.Node(t, nil).Cores(); cores != 0 || err == nil {
		t.Errorf("a node that says nothing has %d cores, %v", cores, err)
	}
}
