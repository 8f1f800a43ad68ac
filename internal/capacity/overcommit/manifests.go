package overcommit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/base/tier"
	"temper.dev/temper/internal/cluster/policy"
)

// Names of the admission policies.
const (
	LowerName = "temper-overcommit"
	KeepName  = "temper-overcommit-annotations"
	// limitsBinding has the policy look at each LimitRange of the pod's namespace.
	limitsBinding = LowerName + "-limitranges"
)

// Manager is the field manager that 'kubectl temper overcommit' writes as. Whoever writes as it, and may annotate
// overcommits.temper.dev in a pod's namespace, may change the annotations. No such resource exists: it is a permission.
const (
	Manager        = "temper-overcommit"
	PermitGroup    = "temper.dev"
	PermitResource = "overcommits"
	PermitVerb     = "annotate"
)

// leftAlone is a creation time by which one look at a pod tells the others that a LimitRange would refuse it. The API server
// throws away what a user says of it before it asks, and writes its own afterwards: nobody else can set it.
const leftAlone = "1970-01-01T00:00:01Z"

// Manifests are the admission policies that do what Admit does, for Kubernetes 1.36 and later, in the order in which to
// make them. None of them refuses a pod.
//
// The API server evaluates temper-overcommit once without a parameter, which lowers, and once for each LimitRange of the
// namespace, which restores what that one would refuse; in any order, and again after other hooks.
func (r *Rules) Manifests() []runtime.Object {
	return append(r.keepers(), r.lowerers()...)
}

func (r *Rules) keepers() []runtime.Object {
	return []runtime.Object{r.keepPolicy(), binding(KeepName, KeepName)}
}

func (r *Rules) lowerers() []runtime.Object {
	return []runtime.Object{r.lowerPolicy(), r.limitsBinding(), binding(LowerName, LowerName)}
}

func (r *Rules) lowerPolicy() *admissionv1.MutatingAdmissionPolicy {
	p := r.policy(LowerName, r.Namespaces, admissionv1.Create, "pods")
	p.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "LimitRange"}
	p.Spec.Variables = r.variables()
	p.Spec.Mutations = []admissionv1.Mutation{patch(r.mutation())}
	return p
}

// keepPolicy holds the annotations to what they were, whoever changes a pod, but for repair and restore.
func (r *Rules) keepPolicy() *admissionv1.MutatingAdmissionPolicy {
	p := r.policy(KeepName, r.All(), admissionv1.Update, "pods", "pods/status", "pods/ephemeralcontainers")
	var changed, patches []string
	for _, key := range []string{OriginalAnnotation, FactorAnnotation} {
		is, was := annotationOf("object", key), annotationOf("oldObject", key)
		changed = append(changed, is+" != "+was)
		patches = append(patches, fmt.Sprintf(`(%[1]s == %[2]s ? [] :
  %[2]s.hasValue() ? [JSONPatch{op: "add", path: "%[3]s", value: %[2]s.value()}] :
  [JSONPatch{op: "remove", path: "%[3]s"}])`, is, was, annotationPath(key)))
	}
	p.Spec.MatchConditions = []admissionv1.MatchCondition{
		{Name: "changed", Expression: strings.Join(changed, " || ")},
		{Name: "by-others", Expression: fmt.Sprintf(`request.?options.?fieldManager.orValue('') != '%s' ||
  !authorizer.group('%s').resource('%s').namespace(request.namespace).check('%s').allowed()`, Manager, PermitGroup, PermitResource, PermitVerb)},
	}
	p.Spec.Mutations = []admissionv1.Mutation{patch("(has(object.metadata.annotations) ? [] : [" + emptyAnnotations + "]) +\n" + strings.Join(patches, " +\n"))}
	return p
}

func (r *Rules) policy(name string, namespaces []string, operation admissionv1.OperationType, resources ...string) *admissionv1.MutatingAdmissionPolicy {
	return &admissionv1.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: r.stored()},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      new(admissionv1.Ignore),
			ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces},
				}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{operation},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources},
				}}},
			},
		},
	}
}

func binding(name, policy string) *admissionv1.MutatingAdmissionPolicyBinding {
	return &admissionv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy},
	}
}

func (r *Rules) limitsBinding() *admissionv1.MutatingAdmissionPolicyBinding {
	b := binding(limitsBinding, LowerName)
	b.Spec.ParamRef = &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: new(admissionv1.AllowAction)}
	return b
}

func patch(expression string) admissionv1.Mutation {
	return admissionv1.Mutation{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: expression}}
}

// define gives an expression of CEL a name, by which later ones have it.
type define func(name, expression string, args ...any)

// variables are Admit in CEL, with the same names. Amounts are mCPU; -1 is none.
func (r *Rules) variables() []admissionv1.Variable {
	var variables []admissionv1.Variable
	is := func(name, expression string, args ...any) {
		variables = append(variables, admissionv1.Variable{Name: name, Expression: fmt.Sprintf(expression, args...)})
	}
	r.reads(is)
	r.believes(is)
	r.lowers(is)
	r.exempts(is)
	r.looks(is)
	return variables
}

// reads are what the pod asks for.
func (r *Rules) reads(is define) {
	is("inits", "object.spec.?initContainers.orValue([])")
	is("all", "object.spec.containers + variables.inits")
	is("init", "size(object.spec.containers)")
	is("names", "variables.all.map(c, string(c.name))")
	is("requests", "variables.all.map(c, %s)", milliOf("c.?resources.?requests.?cpu"))
	is("limits", "variables.all.map(c, %s)", milliOf("c.?resources.?limits.?cpu"))
	is("sidecar", "variables.inits.map(c, c.?restartPolicy.orValue('') == 'Always')")
	is("podResources", "has(object.spec.resources)")
	is("podLimit", "%s", milliOf("object.spec.?resources.?limits.?cpu"))
	is("podRequest", `object.spec.?resources.?requests.?cpu.hasValue() || size(object.spec.?resources.?limits.orValue({})) == 0 ? %s :
  variables.requests.exists(request, request != -1) ? %s : variables.podLimit`,
		milliOf("object.spec.?resources.?requests.?cpu"), aggregateOf("variables.requests"))
	is("beyondMeasure", "size(variables.names) > %d || (variables.requests + variables.limits + [variables.podRequest, variables.podLimit]).max() > %d",
		maxContainers, maxMilli)
	is("memoryIsFixed", "variables.podResources ? %s : variables.all.all(c, %s)", memoryIsFixedOf("object.spec"), memoryIsFixedOf("c"))
}

// believes are what it asked for before it was lowered, as its annotation says, where that can be.
func (r *Rules) believes(is define) {
	is("annotation", "%s", annotationOf("object", OriginalAnnotation))
	is("claims", "size(variables.annotation.orValue('')) <= %d && variables.annotation.orValue('').matches('%s') ? variables.annotation.value().split(',') : []",
		maxAnnotation, annotationPattern)
	const claim = "variables.claims.filter(e, e.startsWith(%[1]s + '=')).map(e, int(e.substring(size(%[1]s) + 1, size(e) - 1)))"
	is("claimed", "variables.names.map(n, "+claim+").map(found, size(found) == 1 ? found[0] : -1)", "n")
	is("podClaims", claim, "'"+podKey+"'")
	is("podClaim", "size(variables.podClaims) == 1 ? variables.podClaims[0] : -1")
	is("containersBefore", `variables.requests.transformList(i, request,
  variables.claimed[i] > request && %s == request &&
  (variables.limits[i] == -1 || variables.claimed[i] <= variables.limits[i]) ? variables.claimed[i] : request)`, r.lowerOf("variables.claimed[i]"))
	is("loweredBefore", "variables.containersBefore.map(x, %s)", r.lowerOf("x"))
	is("aggregateBefore", "%s", aggregateOf("variables.loweredBefore"))
	is("podBefore", `variables.podClaim > variables.podRequest && variables.podClaim >= %s &&
  [variables.podClaim, [%s, variables.aggregateBefore].max()].min() == variables.podRequest &&
  (variables.podLimit == -1 || variables.podClaim <= variables.podLimit) ? variables.podClaim : variables.podRequest`,
		aggregateOf("variables.containersBefore"), r.lowerOf("variables.podClaim"))
	is("guaranteedBefore", "%s", guaranteedOf("variables.podBefore", "variables.containersBefore"))
	is("original", "variables.guaranteedBefore ? variables.requests : variables.containersBefore")
	is("podOriginal", "variables.guaranteedBefore ? variables.podRequest : variables.podBefore")
}

// lowers are what the rules make of it.
func (r *Rules) lowers(is define) {
	is("lowered", "variables.original.map(x, %s)", r.lowerOf("x"))
	is("aggregate", "%s", aggregateOf("variables.lowered"))
	is("podLowered", "[variables.podOriginal, [%s, variables.aggregate].max()].min()", r.lowerOf("variables.podOriginal"))
}

// exempts are what tells whether the pod is left alone.
func (r *Rules) exempts(is define) {
	is("owners", "object.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false))")
	is("ownerKey", "size(variables.owners) == 0 ? '' : (variables.owners[0].apiVersion.contains('/') ? variables.owners[0].apiVersion.split('/')[0] : '') + '/' + variables.owners[0].kind")
	is("hash", "'-' + object.metadata.?labels[?'pod-template-hash'].orValue('')")
	is("workload", `size(variables.owners) == 0 ? '' :
  variables.owners[0].kind == 'ReplicaSet' && variables.hash != '-' && variables.owners[0].name.endsWith(variables.hash) ?
  'Deployment/' + variables.owners[0].name.substring(0, size(variables.owners[0].name) - size(variables.hash)) :
  variables.owners[0].kind + '/' + variables.owners[0].name`)
	is("autoscaled", "object.metadata.namespace + '/' + variables.workload in %s", r.autoscaled())
	is("ownTier", "{'system': 0, 'critical': 1, 'standard': 2, 'background': 3}[?object.metadata.?labels[?'%s'].orValue('')].orValue(-1)", v1alpha1.TierLabel)
	is("highestTier", "{'system': 0, 'critical': 1, 'standard': 2, 'background': 3}[?namespaceObject.metadata.?labels[?'%s'].orValue('')].orValue(2)", v1alpha1.HighestTierLabel)
	is("class", "object.spec.?priorityClassName.orValue('')")
	is("tiers", "[%s]", strings.Join(r.tierRanks(), ",\n"))
	is("exempt", `%s in object.metadata.?annotations.orValue({}) ||
  variables.ownerKey != '' && !(variables.ownerKey in %s) ||
  variables.autoscaled || %s ||
  %t && object.spec.?nodeName.orValue('') != '' ||
  %t && !has(object.spec.priority) ||
  variables.tiers.exists(t, !([t, variables.ownTier].max() in %s))`,
		quote(corev1.MirrorPodAnnotationKey), list(ordinary), guaranteedOf("variables.podOriginal", "variables.original"), r.EnforcedOnly, r.ranges, r.coveredRanks())
	is("leftAlone", "variables.beyondMeasure || variables.exempt || variables.lowered == variables.original && variables.podLowered == variables.podOriginal")
}

// looks are what tells whether there is something to write.
func (r *Rules) looks(is define) {
	is("record", `(variables.names.transformList(i, n, variables.lowered[i] == variables.original[i] ? '' : n + '=' + string(variables.original[i]) + 'm') +
  [variables.podLowered == variables.podOriginal ? '' : '%s=' + string(variables.podOriginal) + 'm']).filter(e, e != '').join(',')`, podKey)
	is("done", "object.metadata.?creationTimestamp.orValue(null) != null")
	is("podTotal", "variables.podLowered == -1 ? variables.aggregate : variables.podLowered")
	is("podTotalLimit", "variables.podLimit == -1 ? %s : variables.podLimit", aggregateOf("variables.limits"))
	against := func(request, limit string) string {
		return fmt.Sprintf(`%[1]s >= 0 && %[1]s < %[3]s ||
    %[4]s != -1 && %[1]s > 0 && %[2]s > 0 && double(%[2]s) / double(%[1]s) * 1000.0 > double(%[4]s)`,
			request, limit, milliOf("l.?min.?cpu"), milliOf("l.?maxLimitRequestRatio.?cpu"))
	}
	is("refused", `params.spec.limits.exists(l,
  l.type == 'Container' && variables.lowered.transformList(i, x, %s).exists(refused, refused) ||
  l.type == 'Pod' && (%s))`, against("x", "variables.limits[i]"), against("variables.podTotal", "variables.podTotalLimit"))
}

// mutation lowers where there is no parameter, and restores what its LimitRange would refuse.
func (r *Rules) mutation() string {
	set := func(requests, pod string) string {
		return fmt.Sprintf(`variables.%[1]s.transformList(i, x, x == variables.requests[i] ? [] : [JSONPatch{op: "add",
    path: (i < variables.init ? "/spec/containers/" + string(i) : "/spec/initContainers/" + string(i - variables.init)) + "/resources/requests/cpu",
    value: string(x) + "m"}]).flatten() +
  (variables.%[2]s == variables.podRequest ? [] : [JSONPatch{op: "add", path: "/spec/resources/requests/cpu", value: string(variables.%[2]s) + "m"}])`, requests, pod)
	}
	var remove, add []string
	for _, a := range []struct{ key, value string }{{OriginalAnnotation, "variables.record"}, {FactorAnnotation, quote(r.factor())}} {
		remove = append(remove, fmt.Sprintf(`(%s.hasValue() ? [JSONPatch{op: "remove", path: "%s"}] : [])`, annotationOf("object", a.key), annotationPath(a.key)))
		add = append(add, fmt.Sprintf(`JSONPatch{op: "add", path: "%s", value: %s}`, annotationPath(a.key), a.value))
	}
	clearing := strings.Join(remove, " +\n  ")
	return fmt.Sprintf(`variables.done ? [] :
params == null ? (variables.leftAlone ? %[1]s :
  (has(object.metadata.annotations) ? [] : [%[2]s]) +
  [%[3]s] +
  %[7]s%[4]s) :
variables.leftAlone || !variables.refused ? [] : %[1]s +
  %[8]s%[5]s +
  [JSONPatch{op: "add", path: "/metadata/creationTimestamp", value: "%[6]s"}]`,
		clearing, emptyAnnotations, strings.Join(add, ",\n  "), set("lowered", "podLowered"), set("original", "podOriginal"), leftAlone,
		r.eachOfResource(`(object.spec.containers[0].?resources.?%[1]s.hasValue() ? [] : [JSONPatch{op: "add", path: "/spec/containers/0/resources/%[1]s", value: {}}]) +
  [JSONPatch{op: "add", path: "/spec/containers/0/resources/%[1]s/%[2]s", value: "1"}] +
  `), r.eachOfResource(`(!object.spec.containers[0].?resources.?%[1]s[?'%[3]s'].hasValue() ? [] :
    [JSONPatch{op: "remove", path: "/spec/containers/0/resources/%[1]s/%[2]s"}]) +
  `))
}

// eachOfResource is an expression for what the first container requests and is limited to of v1alpha1.OvercommitResource.
func (r *Rules) eachOfResource(expression string) (both string) {
	if !r.EnforcedOnly {
		return ""
	}
	for _, list := range []string{"requests", "limits"} {
		both += fmt.Sprintf(expression, list, pointer(v1alpha1.OvercommitResource), v1alpha1.OvercommitResource)
	}
	return both
}

const emptyAnnotations = `JSONPatch{op: "add", path: "/metadata/annotations", value: {}}`

func annotationOf(object, key string) string {
	return fmt.Sprintf("%s.metadata.?annotations[?'%s']", object, key)
}

func annotationPath(key string) string {
	return "/metadata/annotations/" + pointer(key)
}

// pointer writes a key as a part of a JSON pointer.
func pointer(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// milliOf is milli of an optional amount.
func milliOf(amount string) string {
	return fmt.Sprintf("(!%[1]s.hasValue() ? -1 : quantity(string(%[1]s.value())).isGreaterThan(quantity('%[2]d')) ? %[3]d : int(quantity(string(%[1]s.value())).asApproximateFloat() * 1000.0 + 0.5))",
		amount, maxCores, maxMilli+1)
}

func memoryIsFixedOf(owner string) string {
	return fmt.Sprintf(`%[1]s.?resources.?limits.?memory.hasValue() &&
  sign(quantity(string(%[1]s.resources.limits.memory))) > 0 &&
  quantity(string(%[1]s.?resources.?requests.?memory.orValue(%[1]s.resources.limits.memory))).compareTo(quantity(string(%[1]s.resources.limits.memory))) == 0`, owner)
}

func (r *Rules) lowerOf(amount string) string {
	return fmt.Sprintf("(%[1]s <= %[2]d ? %[1]s : [%[2]d, (%[1]s * %[3]d + 999) / 1000].max())", amount, r.Floor, r.permille)
}

func guaranteedOf(pod, containers string) string {
	return fmt.Sprintf(`(variables.memoryIsFixed && (variables.podResources ? variables.podLimit > 0 && %s == variables.podLimit :
  %s == variables.limits && variables.limits.all(l, l > 0)))`, pod, containers)
}

// aggregateOf is aggregate of a list of amounts. An init container comes with the sidecars before it.
func aggregateOf(amounts string) string {
	return fmt.Sprintf(`([%[1]s.transformList(i, x, i < variables.init || variables.sidecar[i - variables.init] ? [x, 0].max() : 0).sum()] +
  %[1]s.transformList(i, x, i < variables.init ? 0 : [x, 0].max() +
    variables.sidecar.transformList(j, is, is && j < i - variables.init ? [%[1]s[j + variables.init], 0].max() : 0).sum())).max()`, amounts)
}

// tierRanks are a pod's tier by each policy, within its namespace's highest, as policy.Tier says it without the pod's label.
func (r *Rules) tierRanks() (ranks []string) {
	within := func(t tier.Tier) string { return fmt.Sprintf("[%d, variables.highestTier].max()", t) }
	if len(r.TierPolicies) == 0 {
		return []string{within(tier.Standard)}
	}
	for _, from := range r.TierPolicies {
		var rank strings.Builder
		for _, rule := range from.Spec.Rules {
			t, _ := tier.Parse(string(rule.Tier)) // Compile has parsed it
			fmt.Fprintf(&rank, "%s ? %s :\n  ", fits(rule), within(t))
		}
		// Kubernetes' own classes are not held to the namespace's highest tier.
		for _, class := range []string{"system-node-critical", "system-cluster-critical"} {
			fmt.Fprintf(&rank, "variables.class == '%s' ? %d :\n  ", class, withoutRules(from, class))
		}
		burstable := withoutRules(from, "")
		ranks = append(ranks, rank.String()+within(burstable))
	}
	return ranks
}

// withoutRules is the tier of Burstable pods of a class that no rule fits.
func withoutRules(from *v1alpha1.TierPolicy, class string) tier.Tier {
	from = from.DeepCopy()
	from.Spec.Rules = nil
	p, _ := policy.Compile(from) // Compile has found it valid
	return p.Tier(&corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: class}, Status: corev1.PodStatus{QOSClass: corev1.PodQOSBurstable}}, nil).Tier
}

func fits(rule v1alpha1.TierRule) string {
	var either []string
	if len(rule.PriorityClassNames) > 0 {
		either = append(either, "variables.class in "+list(rule.PriorityClassNames))
	}
	if p := rule.Priority; p != nil {
		var both []string
		if p.Min != nil {
			both = append(both, fmt.Sprintf("object.spec.priority >= %d", *p.Min))
		}
		if p.Max != nil {
			both = append(both, fmt.Sprintf("object.spec.priority <= %d", *p.Max))
		}
		either = append(either, strings.Join(both, " && "))
	}
	return "(" + strings.Join(either, " || ") + ")"
}

func (r *Rules) coveredRanks() string {
	var ranks []string
	for _, t := range r.Tiers {
		ranks = append(ranks, strconv.Itoa(int(t)))
	}
	slices.Sort(ranks)
	return "[" + strings.Join(ranks, ", ") + "]"
}

func (r *Rules) autoscaled() string {
	var names []string
	for _, w := range r.Autoscaled {
		names = append(names, w.Namespace+"/"+w.Kind+"/"+w.Name)
	}
	return list(names)
}

// quote writes a string as CEL does: names of classes may be any text.
func quote(text string) string { return strconv.Quote(text) }

func list(texts []string) string {
	quoted := make([]string, 0, len(texts))
	for _, text := range texts {
		quoted = append(quoted, quote(text))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
