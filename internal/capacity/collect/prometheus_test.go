package collect

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"temper.dev/temper/internal/capacity/snapshot"
)

// What Prometheus answers when a part of it is away, or what it holds is no amount: no number comes of that. The server is
// ours, since a whole one does not answer so; what a whole one answers, tools/alerts has.
func TestAnswersThatCannotBeTrusted(t *testing.T) {
	const first, second = "1767225600", "1767312000" // two days
	whole := map[string]string{"max_over_time": first + `,"2"],[` + second + `,"3"`, "quantile_over_time": first + `,"1"],[` + second + `,"1"`, "count_over_time": first + `,"1440"],[` + second + `,"1440"`}
	for _, c := range []struct {
		what, function, values string // in place of those of the function
		warning                string
		hours                  float64 // 0: nothing is known
		want                   string  // of the note or the error; "": none
	}{
		{what: "a whole answer", hours: 48},
		{what: "the highest is no number", function: "max_over_time", values: first + `,"2"],[` + second + `,"NaN"`, want: "no use of 1 pods, shop/web first"},
		{what: "the highest is infinite", function: "max_over_time", values: first + `,"+Inf"],[` + second + `,"2"`, want: "no use of 1 pods, shop/web first"},
		{what: "the p95 is negative", function: "quantile_over_time", values: first + `,"-2"],[` + second + `,"1"`, want: "no use of 1 pods, shop/web first"},
		{what: "the highest of one day is missing", function: "max_over_time", values: second + `,"3"`, want: "no use of 1 pods, shop/web first"},
		{what: "the highest is missing", function: "max_over_time", want: "no use of 1 pods, shop/web first"},
		{what: "the count is missing", function: "count_over_time", want: "no use of 1 pods, shop/web first"},
		{what: "the p95 is above the highest", function: "quantile_over_time", values: first + `,"9"],[` + second + `,"1"`, want: "no use of 1 pods, shop/web first"},
		{what: "a store is away", warning: "partial response", want: "answers with a warning: partial response"},
	} {
		said := maps.Clone(whole)
		if c.function != "" {
			said[c.function] = c.values
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			series, warnings := "", ""
			for function, values := range said {
				if strings.HasPrefix(r.FormValue("query"), function) && values != "" {
					series = `{"metric":{"pod":"web"},"values":[[` + values + `]]}`
				}
			}
			if c.warning != "" {
				warnings = `,"warnings":["` + c.warning + `"]`
			}
			fmt.Fprintf(w, `{"status":"success"%s,"data":{"resultType":"matrix","result":[%s]}}`, warnings, series)
		}))
		r := &Result{Snapshot: &snapshot.Snapshot{Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}}}}
		err := r.AddPrometheus(t.Context(), server.URL, 48*time.Hour, time.Unix(1767312000, 0), func(int, int) {})
		server.Close()
		use, known := r.Use["shop/web"]
		got := strings.Join(r.Notes, "; ")
		if err != nil {
			got = err.Error()
		}
		if known != (c.hours > 0) || use.Hours != c.hours || !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: known %t, %v hours, %q; want %v hours, %q", c.what, known, use.Hours, got, c.hours, c.want)
		}
	}
}
