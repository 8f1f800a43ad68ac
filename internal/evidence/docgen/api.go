package docgen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// API is what a CustomResourceDefinition says of its kind: each field of its spec, in one table.
func API(definition []byte) (string, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(definition, &crd); err != nil {
		return "", err
	}
	version := crd.Spec.Versions[0]
	root := version.Schema.OpenAPIV3Schema
	part := "spec" // what people write; where they write nothing, what they read
	if _, ok := root.Properties[part]; !ok {
		part = "status"
	}
	fields, ok := root.Properties[part]
	if !ok {
		return "", fmt.Errorf("%s has neither spec nor status", crd.Name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n%s%s\n\n`apiVersion: %s/%s`, short name `%s`, scope %s.\n\n", crd.Spec.Names.Kind, notice,
		plainText(root.Description), crd.Spec.Group, version.Name, strings.Join(crd.Spec.Names.ShortNames, "`, `"), strings.ToLower(string(crd.Spec.Scope)))
	fmt.Fprintf(&b, "| field of `%s` | type | default | |\n| --- | --- | --- | --- |\n", part)
	writeFields(&b, "", fields)
	return b.String(), nil
}

func writeFields(b *strings.Builder, prefix string, of apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		field := of.Properties[name]
		path := prefix + name
		inner := field
		if field.Items != nil {
			inner = *field.Items.Schema
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", path, typeOf(field), defaultOf(field), plainText(field.Description))
		// Selectors and conditions are Kubernetes' own.
		if name == "nodeSelector" || name == "conditions" {
			continue
		}
		if field.Items != nil {
			path += "[]"
		}
		writeFields(b, path+".", inner)
	}
}

func typeOf(field apiextensionsv1.JSONSchemaProps) string {
	switch {
	case len(field.Enum) > 0:
		var values []string
		for _, v := range field.Enum {
			values = append(values, "`"+strings.Trim(string(v.Raw), `"`)+"`")
		}
		return strings.Join(values, ", ")
	case field.Items != nil:
		return "list of " + typeOf(*field.Items.Schema)
	case field.Minimum != nil && field.Maximum != nil:
		return fmt.Sprintf("%s, %g to %g", field.Type, *field.Minimum, *field.Maximum)
	}
	return field.Type
}

func defaultOf(field apiextensionsv1.JSONSchemaProps) string {
	if field.Default == nil || field.Type == "object" {
		return ""
	}
	return "`" + strings.Trim(string(field.Default.Raw), `"`) + "`"
}

// plainText is a description on one line, fit for a table.
func plainText(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
