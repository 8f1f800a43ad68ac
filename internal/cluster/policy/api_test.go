package policy

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definition "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/packaging/kubernetes"
)

// apiServer checks and fills in a TierPolicy by the code by which the API server does it.
type apiServer struct {
	fields     validation.SchemaValidator
	structural *schema.Structural
	rules      *cel.Validator
}

func newAPIServer(t *testing.T) apiServer {
	t.Helper()
	text, err := os.ReadFile("../../../packaging/kubernetes/crds/temper.dev_tierpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &v1); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	v1.Status.StoredVersions = []string{v1alpha1.GroupVersion.Version}
	var crd apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &crd, nil); err != nil {
		t.Fatal(err)
	}
	if errs := definition.ValidateCustomResourceDefinition(t.Context(), &crd); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	props := crd.Spec.Validation.OpenAPIV3Schema
	var s apiServer
	if s.fields, _, err = validation.NewSchemaValidator(props); err != nil {
		t.Fatal(err)
	}
	if s.structural, err = schema.NewStructural(props); err != nil {
		t.Fatal(err)
	}
	s.rules = cel.NewValidator(s.structural, true, 1<<30)
	return s
}

// create is what becomes of an object; an error says why it is refused.
func (s apiServer) create(object map[string]any) error {
	defaulting.Default(object, s.structural)
	errs := validation.ValidateCustomResource(nil, object, s.fields)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(errs) == 0 {
		errs, _ = s.rules.Validate(context.Background(), field.NewPath("root"), s.structural, object, nil, 1<<40)
	}
	return errs.ToAggregate()
}

func parse(t *testing.T, text string) (object map[string]any, p *v1alpha1.TierPolicy) {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	// As the API server reads it: whole numbers are integers.
	if err := utiljson.Unmarshal(asJSON, &object); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return object, p
}

const header = "apiVersion: temper.dev/v1alpha1\nkind: TierPolicy\nmetadata: {name: p}\nspec:\n  "

// What the API server takes, Compile takes, and nothing else.
func TestCompileAgreesWithTheAPI(t *testing.T) {
	api := newAPIServer(t)
	for _, c := range []struct{ what, spec, fault string }{ // no fault: it is good
		{"nothing", "{}", ""},
		{"all", `{nodeSelector: {matchExpressions: [{key: pool, operator: In, values: [a, b]}]}, precedence: -3,
			rules: [{name: a, priorityClassNames: [gold, silver], tier: critical}, {name: b, priority: {min: 1, max: 1}, tier: system}],
			qos: {guaranteed: critical, burstable: background, bestEffort: standard},
			reservationPercent: 1, loans: never, smt: exclusive, limits: gap, podLimits: [gap, paced, freeze]}`, ""},
		{"no limits that pods may ask for", "{podLimits: []}", ""},
		{"an open range", "{rules: [{name: a, priority: {max: -1}, tier: background}]}", ""},
		{"an unknown tier", "{rules: [{name: a, priority: {max: -1}, tier: urgent}]}", "urgent"},
		{"no tier", "{rules: [{name: a, priority: {max: -1}}]}", "tier"},
		{"no name", "{rules: [{priority: {max: -1}, tier: standard}]}", "name"},
		{"a name that is no label", "{rules: [{name: A b, priority: {max: -1}, tier: standard}]}", "name"},
		{"two rules of one name", "{rules: [{name: a, priority: {max: -1}, tier: standard}, {name: a, priority: {max: -1}, tier: standard}]}", "two rules"},
		{"a rule that asks for nothing", "{rules: [{name: a, tier: standard}]}", "priorityClassNames, or priority"},
		{"no class", "{rules: [{name: a, priorityClassNames: [], tier: standard}]}", "priorityClassNames"},
		{"a class without a name", "{rules: [{name: a, priorityClassNames: [''], tier: standard}]}", "priorityClassNames"},
		{"a class twice", "{rules: [{name: a, priorityClassNames: [gold, gold], tier: standard}]}", "priorityClassNames"},
		{"no class beside a range", "{rules: [{name: a, priorityClassNames: [], priority: {min: 1}, tier: standard}]}", "priorityClassNames"},
		{"65 rules", "{rules: [" + strings.Repeat("{name: a, priorityClassNames: [gold], tier: standard},", 65) + "]}", "rules"},
		{"a selector with an unknown operator", "{nodeSelector: {matchExpressions: [{key: pool, operator: Gt, values: ['1']}]}}", "nodeSelector"},
		{"a selector without values", "{nodeSelector: {matchExpressions: [{key: pool, operator: In}]}}", "nodeSelector"},
		{"a selector with values that it has no use for", "{nodeSelector: {matchExpressions: [{key: pool, operator: Exists, values: [a]}]}}", "nodeSelector"},
		{"an empty range", "{rules: [{name: a, priority: {}, tier: standard}]}", "a range has min, or max"},
		{"a range the wrong way round", "{rules: [{name: a, priority: {min: 2, max: 1}, tier: standard}]}", "min is above max"},
		{"an unknown tier of a QoS class", "{qos: {burstable: low}}", "burstable"},
		{"a reservation of nothing", "{reservationPercent: 0}", "reservationPercent"},
		{"a reservation beyond all measure", "{reservationPercent: 1001}", "reservationPercent"},
		{"unknown loans", "{loans: always}", "loans"},
		{"unknown use of SMT", "{smt: half}", "smt"},
		{"unknown limits", "{limits: pace}", "limits"},
		{"unknown limits for pods", "{podLimits: [paced, pace]}", "podLimits"},
		{"limits that no pod has", "{podLimits: [ignore]}", "podLimits"},
		{"limits for pods that are there twice", "{podLimits: [gap, gap]}", "podLimits"},
	} {
		object, p := parse(t, header+c.spec)
		_, compiled := Compile(p)
		for who, err := range map[string]error{"the API": api.create(object), "Compile": compiled} {
			switch {
			case c.fault == "" && err != nil:
				t.Errorf("%s: %s refuses it: %v", c.what, who, err)
			case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
				t.Errorf("%s: %s says %v, not %q", c.what, who, err, c.fault)
			}
		}
	}
	// The API server does not ask of a custom resource whether a label can be one.
	object, p := parse(t, header+"{nodeSelector: {matchLabels: {pool: a b}}}")
	if err := api.create(object); err != nil {
		t.Errorf("a value that no label has: %v", err)
	}
	if _, err := Compile(p); err == nil || !strings.Contains(err.Error(), "nodeSelector") {
		t.Errorf("a value that no label has: %v", err)
	}
}

// What the API server fills in is what Compile takes for granted.
func TestDefaultsOfTheAPI(t *testing.T) {
	object, p := parse(t, header+"{}")
	if err := newAPIServer(t).create(object); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"limits":"paced","loans":"gaps","podLimits":["paced","freeze"],"precedence":0,"qos":{"bestEffort":"background","burstable":"standard","guaranteed":"standard"},"reservationPercent":100,"smt":"share"}`
	if string(text) != want {
		t.Errorf("got %s", text)
	}
	_, filled := parse(t, header+strings.TrimSpace(string(text)))
	before, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Compile(filled)
	if err != nil {
		t.Fatal(err)
	}
	for class, tier := range after.qos {
		if before.qos[class] != tier {
			t.Errorf("%s: %v without defaults, %v with them", class, before.qos[class], tier)
		}
	}
	if !slices.Equal(before.podLimits(), after.podLimits()) {
		t.Errorf("podLimits: %v without defaults, %v with them", before.podLimits(), after.podLimits())
	}
}

func TestDefaultPolicyIsValid(t *testing.T) {
	object, p := parse(t, string(kubernetes.DefaultPolicy))
	if err := newAPIServer(t).create(object); err != nil {
		t.Error(err)
	}
	if _, err := Compile(p); err != nil {
		t.Error(err)
	}
}
