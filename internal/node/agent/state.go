package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"temper.dev/temper/internal/base/exit"
	"temper.dev/temper/internal/base/host"
	"temper.dev/temper/internal/node/enforce"
)

// StateFile is what the agent tells others, below /run/temper.
const StateFile = "status.json"

// maxExits is how many exits of scx_temper the history keeps.
const maxExits = 20

// State is the agent's word on itself. It is written at every change, so it has no figure that changes by itself.
type State struct {
	Started          time.Time    `json:"started"`
	PID              int          `json:"pid"` // 0: stopped in order
	Config           string       `json:"config"`
	Policy           string       `json:"policy,omitempty"`            // the TierPolicy that applies, in a cluster
	CriticalMilliCPU int64        `json:"critical_millicpu,omitempty"` // what critical pods request
	Reserved         *int64       `json:"reserved_millicpu"`           // up to which critical is to come first; null: however much it uses
	Rung             enforce.Rung `json:"rung"`
	Reason           string       `json:"reason"`
	Since            time.Time    `json:"since"` // of the rung
	Off              *Off         `json:"off"`   // why the node is left alone on purpose; null: it is not
	Loader           int          `json:"loader_pid"`
	Failures         int          `json:"failures"` // of scx_temper, that count at the moment
	RetryAt          *time.Time   `json:"retry_at"` // when scx_temper is tried again; null: not planned
	Members          []Member     `json:"members"`
	Problems         []string     `json:"problems"` // what is not as configured, one line each
	Exits            []Exit       `json:"exits"`    // of scx_temper, the newest last
}

// Exit is one end of scx_temper.
type Exit struct {
	Time     time.Time `json:"time"`  // of the last, where Times is more than one
	Times    int       `json:"times"` // attempts in a row that were refused for the same reason count as one exit
	Status   int       `json:"status"`
	Text     string    `json:"text"`
	Kind     int       `json:"kind"`      // enum scx_exit_kind; 0: the kernel did not eject it
	ExitCode int64     `json:"exit_code"` // of the scheduler
	Reason   string    `json:"reason"`    // the kernel's own words
	Message  string    `json:"message"`
}

// equal tells whether two states say the same.
func (s State) equal(other State) bool {
	return slices.Equal(s.Members, other.Members) && s.EqualButMembers(other)
}

// EqualButMembers is equal without the members, which are many, and come and go.
func (s State) EqualButMembers(other State) bool {
	s.Members, other.Members = nil, nil
	return reflect.DeepEqual(s, other)
}

// clone has nothing in common with what the agent goes on to change.
func (s State) clone() State {
	s.Members, s.Problems, s.Exits = slices.Clone(s.Members), slices.Clone(s.Problems), slices.Clone(s.Exits)
	return s
}

// ReadState reads the file of the agent that runs or ran last; fs.ErrNotExist if there was none since boot.
func ReadState(root host.Root) (*State, error) {
	data, err := os.ReadFile(root.Run(StateFile))
	if err != nil {
		return nil, err
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", root.Run(StateFile), err)
	}
	return &s, nil
}

// pastExits are those that an earlier agent has written down.
func pastExits(root host.Root) ([]Exit, error) {
	s, err := ReadState(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.Exits, nil
}

// addExit keeps the newest. An attempt that was refused like the one before must not push out what matters.
func (s *State) addExit(e Exit, attempt bool) {
	if last := len(s.Exits) - 1; attempt && last >= 0 && s.Exits[last].Status == e.Status && s.Exits[last].Text == e.Text {
		s.Exits[last].Time = e.Time
		s.Exits[last].Times++
		return
	}
	e.Times = 1
	s.Exits = append(s.Exits, e)
	s.Exits = s.Exits[max(0, len(s.Exits)-maxExits):]
}

const lockFile = "agent.lock"

// lock makes sure that one agent runs. It lasts as long as the process. Only root may open the file: who can open it can lock it,
// too, and keep all agents away.
func lock(root host.Root) (*os.File, error) {
	if err := os.MkdirAll(root.Run(""), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(root.Run(lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil { // an earlier version's is open to all
		f.Close()
		return nil, err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		f.Close()
		return nil, exit.New(exit.Failed, "stop it, or leave the node to it", "another temper agent runs on this node")
	}
	return f, nil
}

// IsRunning tells whether an agent runs: the lock dies with its process, whatever kills it. Who may not open the file finds the
// lock among all of the kernel's.
func IsRunning(root host.Root) bool {
	f, err := os.Open(root.Run(lockFile))
	if errors.Is(err, fs.ErrPermission) {
		return isAmongLocks(root)
	}
	if err != nil {
		return false
	}
	defer f.Close()
	ask := unix.Flock_t{Type: unix.F_RDLCK}
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &ask) == nil && ask.Type == unix.F_WRLCK
}

// isAmongLocks looks for the agent's in /proc/locks, which has a line for each lock of whatever namespace:
// "7: OFDLCK ADVISORY  WRITE -1 00:19:1234 0 EOF".
func isAmongLocks(root host.Root) bool {
	var st unix.Stat_t
	if unix.Stat(root.Run(lockFile), &st) != nil {
		return false
	}
	text, err := os.ReadFile(root.Path("/proc/locks"))
	if err != nil {
		return false
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 5 && words[1] == "OFDLCK" && words[3] == "WRITE" && words[5] == file {
			return true
		}
	}
	return false
}
