package nodepods

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/internal/base/tier"
)

func TestGrant(t *testing.T) {
	early := metav1.NewTime(time.Unix(1000, 0))
	late := metav1.NewTime(early.Add(time.Second))
	owner := claim{id: "a", uid: "5", created: late, pod: Pod{Name: "owner", Tier: tier.Background}}
	posing := claim{id: "a", uid: "4", created: early, static: true, pod: Pod{Name: "posing", Tier: tier.Critical}}
	critical := claim{id: "h", uid: "3", created: late, static: true, pod: Pod{Name: "critical", Tier: tier.Critical}}
	lower := claim{id: "h", uid: "2", created: early, static: true, pod: Pod{Name: "lower", Tier: tier.Standard}}
	equal := claim{id: "h", uid: "4", created: late, static: true, pod: Pod{Name: "equal", Tier: tier.Critical}}

	want := []string{"pod equal says that it is h, which is critical", "pod lower says that it is h, which is critical", "pod posing says that it is a, which is owner"}
	for _, claims := range [][]claim{{owner, posing, critical, lower, equal}, {equal, lower, critical, posing, owner}} {
		k := &Known{Pods: map[string]Pod{}}
		refused := k.grant(claims)
		slices.Sort(refused)
		if !slices.Equal(refused, want) {
			t.Errorf("refused %q", refused)
		}
		if k.Pods["a"] != owner.pod || k.Pods["h"] != critical.pod || len(k.Pods) != 2 {
			t.Errorf("granted %+v", k.Pods)
		}
	}
}
