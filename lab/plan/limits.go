package plan

import (
	"slices"
	"time"
)

// Services that are held to limits.
const (
	GoService = "go"
	JVM       = "jvm"
	MariaDB   = "mariadb"
	Postgres  = "postgres"
)

// What guest and host agree on about services: where their programs are, and as whom they run that refuse root.
const (
	PostgresPrograms = "/usr/lib/postgresql/15/bin"
	MariaDBProgram   = "/usr/sbin/mariadbd"
	JavaHome         = "/usr/lib/jvm/java-17-openjdk-amd64"
	JVMClasses       = "/usr/share/jvmservice"
	ServiceUser      = 1
)

// MariaDBTables are the files, below the root, that make MariaDB's system tables, in this order.
var MariaDBTables = []string{
	"usr/share/mysql/mysql_system_tables.sql", "usr/share/mysql/mysql_performance_tables.sql",
	"usr/share/mysql/mysql_system_tables_data.sql",
}

// LimitPeriod is that of limits that the lab sets, unless an arm has another: the kernel's default.
const LimitPeriod = 100 * time.Millisecond

// Limits is a boot of the lab in which a service is held to a CPU limit under each arm.
type Limits struct {
	Service string   `json:"service"`
	Arms    []string `json:"arms"`  // of LimitArms, in the order to run
	Steps   []int    `json:"steps"` // background spinners
	Clients int      `json:"clients"`
	CPUs    int      `json:"cpus"`            // application CPUs
	Limit   float64  `json:"limit_cpus"`      // the service's
	Load    float64  `json:"load"`            // of the open loop, over what the stock kernel's limit lets through
	Seconds float64  `json:"seconds"`         // guest seconds of a window
	WarmUp  float64  `json:"warm_up_seconds"` // guest seconds of load before each window, not counted
	Seed    int64    `json:"seed"`
	Quantum int      `json:"quantum_us"`
}

// LimitArm is one way to deal with a limit.
type LimitArm struct {
	Name    string
	Under   string // the arm of Arms that schedules
	Limited bool
	Burst   bool          // what is left of a quota is kept for later, up to one quota
	Period  time.Duration // of the limit; 0: LimitPeriod
	Options []any         // of scx_temper
	Summary string
}

// LimitArms are all of them. The stock ones are the best stock setting, and differ in the limit alone.
var LimitArms = []LimitArm{
	{Name: "stock", Under: "cpuidle", Limited: true, Summary: "the kernel's own limit: a cgroup that has spent its quota stands still until the next period"},
	{Name: "burst", Under: "cpuidle", Limited: true, Burst: true, Summary: "the same with cpu.max.burst of one quota: what is left of a quota is kept for later"},
	{Name: "short", Under: "cpuidle", Limited: true, Period: 10 * time.Millisecond, Summary: "the kernel's own limit with a tenth of quota and period: it stands still more often, for a tenth of the time"},
	{Name: "none", Under: "cpuidle", Summary: "no limit"},
	{Name: "temper", Under: Temper, Limited: true, Summary: "scx_temper keeps the limit by pacing"},
	{Name: "temper-freeze", Under: Temper, Limited: true, Options: []any{"--limits", "freeze"}, Summary: "scx_temper keeps the limit by standing still until the next period"},
	{Name: "temper-burst", Under: Temper, Limited: true, Burst: true, Summary: "the same with cpu.max.burst of one quota"},
}

// FindLimitArm returns the arm of that name, and whether there is one.
func FindLimitArm(name string) (LimitArm, bool) {
	i := slices.IndexFunc(LimitArms, func(a LimitArm) bool { return a.Name == name })
	if i < 0 {
		return LimitArm{}, false
	}
	return LimitArms[i], true
}

// LimitWindow is one step of one arm, with the service asked in a closed loop, for all that it can do, or in an open one.
type LimitWindow struct {
	Arm           string  `json:"arm"`
	Background    int     `json:"background"`
	OfferedRPS    float64 `json:"offered_rps"` // requests a guest second; 0: closed loop
	RPS           float64 `json:"rps"`         // answered
	Requests      int     `json:"requests"`
	QuotaUseMean  float64 `json:"quota_use_mean"` // CPU time that the cgroup used, in quotas a period
	QuotaUseMax   float64 `json:"quota_use_max"`  // the most in any ten periods in a row
	P50           float64 `json:"p50_ms"`         // open loop: from when the request was due
	P95           float64 `json:"p95_ms"`
	P99           float64 `json:"p99_ms"`
	Max           float64 `json:"max_ms"`
	Scheduler     string  `json:"scheduler"` // attached; "": stock
	Valid         bool    `json:"valid"`
	InvalidReason string  `json:"invalid_reason,omitempty"`
}
