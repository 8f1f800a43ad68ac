package explain

import (
	"encoding/json"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"temper.dev/temper/api/v1alpha1"
	"temper.dev/temper/internal/cluster/manifest"
)

// scheme has the kinds that matter to tiers.
var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, schedulingv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}()

// decoder is strict: a misspelt field would be taken for one that was left out.
var decoder = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

// ReadPath reads a file, or all manifests in a folder and below it.
func (m *Manifests) ReadPath(name string) error { return manifest.ReadPath(name, m.decode) }

// Read adds what a file holds, YAML or JSON, of one document or several. Errors count its documents from 1.
func (m *Manifests) Read(name string, file io.Reader) error {
	return manifest.Read(name, file, m.decode)
}

func (m *Manifests) decode(object map[string]any) error {
	// What the cluster adds may be newer than this program, and says nothing about tiers.
	delete(object, "status")
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	decoded, kind, err := decoder.Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		if kind.Group == v1alpha1.GroupVersion.Group {
			return fmt.Errorf("%s of %s is not known; Temper has TierPolicy of %s", kind.Kind, kind.GroupVersion(), v1alpha1.GroupVersion)
		}
		m.leaveAlone(kind.GroupVersion().String() + " " + kind.Kind)
		return nil
	}
	if err != nil {
		return err
	}
	return m.take(decoded, kind.Kind)
}
